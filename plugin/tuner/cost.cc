#include "plugin/tuner/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace bitrail::plugin::tuner {
namespace {

using namespace nccl;

constexpr double kNone = -1;
constexpr double kMaxMicroseconds = 1e6, kMaxGbs = 1e6;  // of figures that make sense

// How much of a link's bandwidth an algorithm's data gets.
constexpr double kLlShare = 0.5;          // 4 bytes of data, 4 of flag
constexpr double kLl128Share = 0.92;      // 120 bytes of data in 128, and what is lost beside
constexpr double kLl128AloneShare = 0.7;  // a GPU that sends and receives through its one port
constexpr double kTreeShare = 0.92;       // halves of two trees share links unevenly
constexpr double kTreeLlShare = 1 / 3.8;  // receives from children, reduces, and sends on
constexpr double kTreeLl128Share = 7.0 / 9;
constexpr double kNvlsShare = 0.85;
constexpr double kPatShare = 0.75;

// What one GPU sends inside its node and what a node sends to others, as multiples of the bytes,
// and the hops that follow each other.
struct Work {
  double inside = 0, between = 0;
  int64_t inside_hops = 0, between_hops = 0;
  double share = 1;
  bool simple_only = false;
};

int64_t log2_up(int64_t value) {
  return value <= 1 ? 0 : std::bit_width(static_cast<uint64_t>(value - 1));
}

bool is_scattered(int function) { return function == kAllGather || function == kReduceScatter; }

bool ring(const System& s, int function, Work* work) {
  const double n = static_cast<double>(s.ranks);
  const int64_t laps = function == kAllReduce ? 2 : 1;
  double moved = 1;
  if (function == kAllReduce || is_scattered(function)) {
    moved = static_cast<double>(laps) * (n - 1) / n;
  }
  work->between_hops = laps * (s.nodes - 1);
  work->inside_hops = laps * (s.ranks - 1) - work->between_hops;
  work->inside = s.local > 1 ? moved : 0;
  work->between = s.nodes > 1 ? moved : 0;
  return true;
}

// Up and down a chain of the node's GPUs: its ends send once, those between twice.
void chain(const System& s, Work* work) {
  work->inside_hops = 2 * (s.local - 1);
  if (s.local > 1) work->inside = s.local == 2 ? 1 : 2;
}

// Two trees of nodes, half the bytes each: a node is inside one and a leaf of the other.
void trees(const System& s, Work* work) {
  work->between_hops = 2 * log2_up(s.nodes);
  if (s.nodes > 1) work->between = s.nodes == 2 ? 1 : 2;
}

bool tree(const System& s, int function, Work* work) {
  if (function != kAllReduce) return false;
  chain(s, work);
  trees(s, work);
  work->share = kTreeShare;
  return true;
}

// The network sums: each node sends its data once.
bool collnet(const System& s, int function, bool direct, Work* work) {
  if (s.nodes < 2) return false;
  if (function != kAllReduce && !(direct && is_scattered(function))) return false;
  work->simple_only = true;
  if (direct) {
    const double local = static_cast<double>(s.local);
    const int64_t ways = function == kAllReduce ? 2 : 1;
    work->inside = static_cast<double>(ways) * (local - 1) / local;
    work->inside_hops = s.local > 1 ? ways : 0;
  } else {
    chain(s, work);
  }
  work->between = 1;
  work->between_hops = 1;
  return true;
}

// The switch sums and copies: a GPU sends its data once and gets the result once.
bool nvls(const System& s, int function, bool over_trees, Work* work) {
  if (function != kAllReduce && (over_trees || !is_scattered(function))) return false;
  if (over_trees && s.nodes < 2) return false;
  work->simple_only = true;
  work->inside = 1;
  work->inside_hops = 1;
  if (over_trees) {
    trees(s, work);
  } else if (s.nodes > 1) {
    work->between = 1;
    work->between_hops = 1;
  }
  work->share = kNvlsShare;
  return true;
}

// Halving and doubling of scattered parts; one GPU a node.
bool pat(const System& s, int function, Work* work) {
  if (!is_scattered(function) || s.local != 1 || s.nodes < 2) return false;
  const double n = static_cast<double>(s.ranks);
  work->simple_only = true;
  work->between = (n - 1) / n;
  work->between_hops = log2_up(s.ranks);
  work->share = kPatShare;
  return true;
}

bool work_of(const System& s, int function, int algorithm, Work* work) {
  switch (algorithm) {
    case kTree:
      return tree(s, function, work);
    case kRing:
      return ring(s, function, work);
    case kCollNetDirect:
    case kCollNetChain:
      return collnet(s, function, algorithm == kCollNetDirect, work);
    case kNvls:
    case kNvlsTree:
      return nvls(s, function, algorithm == kNvlsTree, work);
    case kPat:
      return pat(s, function, work);
    default:
      return false;
  }
}

double max_ll(const System& s) {
  const size_t generation = s.sm >= 100 ? 3 : s.sm >= 90 ? 2 : s.sm >= 80 ? 1 : 0;
  const size_t scale = static_cast<size_t>(std::clamp<int64_t>(s.nodes, 1, kScales) - 1);
  return s.figures.max_ll[generation][scale];
}

// GB/s that a protocol makes of a link's.
double carried(const System& s, int algorithm, int protocol, double share, double link) {
  const double bandwidth = link * share;
  if (protocol == kLl) {
    return std::min(bandwidth * (algorithm == kTree ? kTreeLlShare : kLlShare), max_ll(s));
  }
  if (protocol == kLl128) {
    if (algorithm == kTree && s.nodes == 1) return bandwidth * kTreeLl128Share;
    return bandwidth * (s.local == 1 ? kLl128AloneShare : kLl128Share);
  }
  return bandwidth;
}

bool sane(double value, double most) { return std::isfinite(value) && value >= 0 && value <= most; }

template <typename From, typename To>
void take(const From& from, double most, To* to) {
  for (size_t row = 0; row < to->size(); row++) {
    for (size_t i = 0; i < (*to)[row].size(); i++) {
      if (sane(from[row][i], most)) (*to)[row][i] = from[row][i];
    }
  }
}

}  // namespace

const Figures& standard_figures() {
  // In the order of Algorithm: LL, LL128, Simple.
  static const Figures figures = {
      .start = {{{6.8, 14, 8.4}, {6.6, 14, 8.4}, {}, {}, {}, {}, {8, 8, 8}}},
      .nvlink_hop = {{{.6, 1.25, 4},
                      {.6, 1.9, 3.4},
                      {0, 0, 3.7},
                      {0, 0, 2.8},
                      {0, 0, 25},
                      {0, 0, 25},
                      {0, 0, 4}}},
      .pci_hop = {{{1, 1.9, 4}, {1, 2.5, 5.7}, {0, 0, 3.7}, {0, 0, 2.8}, {}, {}, {0, 0, 4}}},
      .network_hop = {{{5, 8.5, 14},
                       {2.7, 4, 14},
                       {0, 0, 31},
                       {0, 0, 30},
                       {0, 0, 18},
                       {0, 0, 20.9},
                       {0, 0, 14}}},
      .max_ll = {{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}},
  };
  return figures;
}

Figures figures_of(const TunerConstants* constants) {
  Figures figures = standard_figures();
  if (constants == nullptr) return figures;
  take(constants->base_latencies, kMaxMicroseconds, &figures.start);
  take(constants->hardware_latencies[0], kMaxMicroseconds, &figures.nvlink_hop);
  take(constants->hardware_latencies[1], kMaxMicroseconds, &figures.pci_hop);
  take(constants->hardware_latencies[2], kMaxMicroseconds, &figures.network_hop);
  Figures limits = figures;
  take(constants->max_ll, kMaxGbs, &limits.max_ll);
  for (size_t row = 0; row < limits.max_ll.size(); row++) {
    for (size_t i = 0; i < limits.max_ll[row].size(); i++) {
      if (limits.max_ll[row][i] > 0) figures.max_ll[row][i] = limits.max_ll[row][i];
    }
  }
  return figures;
}

double predict_us(const System& system, int function, int algorithm, int protocol, uint64_t bytes,
                  int pipe_ops) {
  if (function < 0 || function >= kFunctions || protocol < 0 || protocol >= kProtocols) {
    return kNone;
  }
  Work work;
  if (!work_of(system, function, algorithm, &work)) return kNone;
  if (work.simple_only && protocol != kSimple) return kNone;
  const auto a = static_cast<size_t>(algorithm);
  const auto p = static_cast<size_t>(protocol);
  const Figures& figures = system.figures;
  const Figures::Table& inside = system.nvlink ? figures.nvlink_hop : figures.pci_hop;
  const Figures::Table& between = system.nvlink_between ? figures.nvlink_hop : figures.network_hop;
  const double latency = static_cast<double>(work.inside_hops) * inside[a][p] +
                         static_cast<double>(work.between_hops) * between[a][p];
  const double inside_gbs = carried(system, algorithm, protocol, work.share, system.inside_gbs);
  const double between_gbs = carried(system, algorithm, protocol, work.share, system.between_gbs);
  // 1 GB/s is 1,000 bytes a microsecond.
  const double moving = static_cast<double>(bytes) / 1000 *
                        std::max(work.inside / inside_gbs, work.between / between_gbs);
  return figures.start[a][p] + latency * std::clamp(pipe_ops, 1, 1'000'000) + moving;
}

}  // namespace bitrail::plugin::tuner
