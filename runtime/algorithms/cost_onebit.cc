#include "runtime/algorithms/cost_onebit.h"

#include <algorithm>

#include "runtime/algorithms/onebit_hier.h"

namespace bitrail::algorithms {
namespace {

constexpr double kSlotBytes = 8;  // a scale and the flag

// What a call does, by what limits it. One rank's where nothing else is said.
struct Work {
  double latency = 0;   // microseconds
  double messages = 0;  // sent and taken
  double mates = 0;     // bytes between ranks of a node, the most that one sends or takes
  double network = 0;   // bytes out of the busiest node
  int senders = 1;      // of its ranks that send them
  double coding = 0;    // microseconds of a rank that codes, on a core of its own
  int coders = 1;       // of a node
  double delivery = 0;  // microseconds of every rank, the same
  uint32_t turns = 1;   // pieces that overlap
};

int most(const Request& request) {
  return request.placement == nullptr ? 1 : request.placement->most();
}

// Wire and processor work side by side: the shorter hides, except for one piece. What goes from
// rank to rank in a node is copied by processors.
double time_of(const Request& request, const Rates& rates, const Work& work) {
  const double ranks = most(request), crowd = std::max(1.0, ranks / rates.cores);
  const double network =
      work.network * rates.network.beta / std::max(1, std::min(rates.ports, work.senders));
  const double mates = work.mates * std::max(rates.memory, rates.node.beta);
  const double compute =
      std::max(work.coding + work.delivery,
               (work.coders * work.coding + ranks * work.delivery) / rates.cores);
  return work.latency + work.messages * rates.message * crowd + std::max(network, mates + compute) +
         std::min(network, mates + compute) / std::max(1U, work.turns);
}

// Bytes that leave the busiest node where every rank sends `bytes` to every other.
double leaving(const Request& request, double bytes) {
  const int world = request.world_size;
  if (request.placement == nullptr) return (world - 1) * bytes;
  double worst = 0;
  for (const std::vector<int>& ranks : request.placement->ranks)
    worst = std::max(worst, static_cast<double>(ranks.size()) *
                                (world - static_cast<double>(ranks.size())) * bytes);
  return worst;
}

double flat(const Request& request, const Rates& rates, bool scatters, bool gathers) {
  if (request.world_size == 1) return 0;
  const double world = request.world_size, pieces = pieces_of(request);
  const auto count = static_cast<double>(request.count);
  const double halves = (scatters ? 1 : 0) + (gathers ? 1 : 0);
  const bool spans = request.placement == nullptr || request.placement->nodes() > 1;
  // Scales and flags: with the signs, and where segments have them with the results.
  const double slots = request.block_scale ? 1 : halves;
  const double bytes = halves * count / 8 / world + slots * kSlotBytes;
  Work work;
  work.latency = halves * (spans ? rates.network.alpha : rates.node.alpha);
  work.messages = 2 * (world - 1) * (halves * pieces + slots);
  work.mates = (most(request) - 1) * bytes;
  work.network = leaving(request, bytes);
  work.senders = work.coders = most(request);
  if (scatters) work.coding += count * (rates.pack + rates.unpack);  // W sources of a Wth
  if (gathers) work.coding += count / world * rates.pack;
  if (gathers) work.delivery = count * rates.unpack;
  work.turns = pieces_of(request);
  return time_of(request, rates, work);
}

double on_rails(const Request& request, const Rates& rates, int rails) {
  const topology::Placement& placement = *request.placement;
  const auto count = static_cast<double>(request.count);
  const double nodes = placement.nodes(), ranks = placement.most(), share = count / rails;
  const uint32_t pieces = onebit::hier_pieces(request, rails);
  const double slots = request.block_scale ? 1 : 2;
  const double turns = nodes * pieces;
  Work work;
  // Values, flags and results inside, signs and results between.
  work.latency = 3 * rates.node.alpha + 2 * rates.network.alpha;
  work.messages = 2 * (nodes - 1) * (2 * pieces + slots) +
                  (ranks + rails - 2) * (2 * turns + 1 + (slots - 1) * nodes);
  work.mates =
      sizeof(float) * std::max(ranks > rails ? count : count - share, (ranks - 1) * share) +
      (ranks - 1) * share / 8;
  work.network = 2 * (nodes - 1) / nodes * count / 8 + (nodes - 1) * rails * slots * kSlotBytes;
  work.senders = work.coders = rails;
  work.coding = ranks * sizeof(float) * share * rates.reduce + share * (rates.pack + rates.unpack) +
                share / nodes * rates.pack;
  work.delivery = count * rates.unpack;
  work.turns = static_cast<uint32_t>(turns);
  return time_of(request, rates, work);
}

}  // namespace

double onebit_direct_allreduce_cost(const Request& request, const Rates& rates) {
  return flat(request, rates, true, true);
}
double onebit_direct_reduce_scatter_cost(const Request& request, const Rates& rates) {
  return flat(request, rates, true, false);
}
double onebit_direct_allgather_cost(const Request& request, const Rates& rates) {
  return flat(request, rates, false, true);
}
double onebit_hier_allreduce_cost(const Request& request, const Rates& rates) {
  return on_rails(request, rates, onebit_hier_rails(request));
}
double onebit_leader_allreduce_cost(const Request& request, const Rates& rates) {
  return on_rails(request, rates, onebit_leader_rails(request));
}

}  // namespace bitrail::algorithms
