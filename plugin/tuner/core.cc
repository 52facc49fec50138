#include "plugin/tuner/core.h"

#include <array>
#include <cfloat>
#include <cstdlib>

#include "plugin/common/contexts.h"
#include "plugin/log/log.h"
#include "plugin/tuner/links.h"
#include "runtime/config/settings.h"

namespace bitrail::plugin::tuner {
namespace {

using namespace nccl;

constexpr size_t kMaxRanks = size_t{1} << 24;

Contexts<Tuner>& contexts() { return Contexts<Tuner>::get(); }

void read_rows(const std::string& path, std::vector<Row>* rows) {
  if (path.empty()) return;
  std::vector<std::string> problems;
  const Status status = read_csv_file(path, rows, &problems);
  if (!status.ok()) warn("init", "{}; goes without it", status.text());
  for (const std::string& problem : problems) warn("init", "tuner: {}; left out", problem);
}

void turn_on(const config::Settings& settings, const Communicator& communicator, Tuner* tuner) {
  tuner->on = true;
  System& system = tuner->system;
  std::string origin = "no topology";
  const Status status = find_system(settings, static_cast<int64_t>(communicator.ranks),
                                    static_cast<int64_t>(communicator.nodes), &system, &origin);
  if (!status.ok()) warn("init", "tuner: {}; goes by PCI and 100 Gbit/s", status.text());
  if (communicator.domains != nullptr && communicator.domains->domains == 1 && system.nvlink &&
      system.nodes > 1) {
    system.nvlink_between = true;
    system.between_gbs = system.inside_gbs;
  }
  system.figures = figures_of(communicator.constants);
  read_rows(settings.tuner_csv, &tuner->rows);
  info("init",
       "tuner is on: {} ranks on {} nodes, {} GB/s of a GPU over {}, {} GB/s of a node, by {}; {} "
       "rows",
       system.ranks, system.nodes, system.inside_gbs, system.nvlink ? "NVLink" : "PCI",
       system.between_gbs, origin, tuner->rows.size());
}

bool in(int64_t wanted, int64_t value) { return wanted == kAny || wanted == value; }

bool fits(const Row& row, const System& system, const Query& query) {
  return in(row.function, query.function) && query.bytes >= row.min_bytes &&
         query.bytes <= row.max_bytes && in(row.nodes, system.nodes) &&
         in(row.ranks, system.ranks) && in(row.pipe_ops, query.pipe_ops) &&
         in(row.registered, query.registered);
}

bool available(float cost) { return cost >= 0; }  // neither kIgnored nor NaN

// The cheapest entry that is available and that the row means; -1: none.
int cheapest(const Row& row, const float* costs, int algorithms, int protocols) {
  int best = -1;
  for (int a = 0; a < algorithms; a++) {
    for (int p = 0; p < protocols; p++) {
      const int entry = a * protocols + p;
      if (!in(row.algorithm, a) || !in(row.protocol, p) || !available(costs[entry])) continue;
      if (best < 0 || costs[entry] < costs[best]) best = entry;
    }
  }
  return best;
}

void predict(const Tuner& tuner, const Query& query, float* costs, int algorithms, int protocols) {
  for (int a = 0; a < algorithms; a++) {
    for (int p = 0; p < protocols; p++) {
      float& cost = costs[a * protocols + p];
      if (!available(cost)) continue;
      const double us = predict_us(tuner.system, query.function, a, p, query.bytes, query.pipe_ops);
      if (us >= 0) cost = static_cast<float>(us);
    }
  }
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

}  // namespace

Result create(const Communicator& communicator, void** context) {
  *context = nullptr;
  if (communicator.nodes < 1 || communicator.ranks < communicator.nodes ||
      communicator.ranks > kMaxRanks) {
    return refuse("init", "tuner: {} ranks on {} nodes", communicator.ranks, communicator.nodes);
  }
  auto tuner = std::make_unique<Tuner>();
  config::Settings settings;
  const Status status = config::load(&settings);
  if (!status.ok()) {
    warn("init", "tuner is off: {}", status.text());
  } else if (settings.tuner == 1) {
    turn_on(settings, communicator, tuner.get());
  } else if (!settings.tuner_csv.empty()) {
    info("init", "BITRAIL_TUNER_CSV has no effect without BITRAIL_TUNER=1");
  }
  *context = contexts().add(std::move(tuner));
  return kSuccess;
}

Tuner* find(void* context) { return contexts().find(context); }

void destroy(void* context) { (void)contexts().take_out(context); }

bool tune(const Tuner& tuner, const Query& query, float* costs, int algorithms, int protocols,
          int* channels) {
  if (!tuner.on || query.function < 0 || query.function >= kFunctions) return false;
  predict(tuner, query, costs, algorithms, protocols);
  for (const Row& row : tuner.rows) {
    if (!fits(row, tuner.system, query)) continue;
    const int entry = cheapest(row, costs, algorithms, protocols);
    if (entry < 0) continue;
    if (row.algorithm != kAny || row.protocol != kAny) costs[entry] = kChosen;
    if (row.channels > 0) *channels = row.channels;
    return true;
  }
  return false;
}

void choose(const Tuner& tuner, const Query& query, bool collnet, bool nvls, int* algorithm,
            int* protocol, int* channels) {
  // NCCL of this version looks at these only where the plugin does not choose.
  if (is_set("NCCL_ALGO") || is_set("NCCL_PROTO")) return;
  std::array<float, size_t{kAlgorithms} * kProtocols> costs{};
  costs.fill(kIgnored);
  for (int a = 0; a < kAlgorithms; a++) {
    for (int p = 0; p < kProtocols; p++) {
      if (a == kPat) continue;  // younger than this version
      if ((a == kCollNetDirect || a == kCollNetChain) && !collnet) continue;
      if ((a == kNvls || a == kNvlsTree) && !nvls) continue;
      // What the model does not know for this collective does not exist.
      const double us = predict_us(tuner.system, query.function, a, p, query.bytes, query.pipe_ops);
      if (us >= 0) costs[static_cast<size_t>(a) * kProtocols + static_cast<size_t>(p)] = FLT_MAX;
    }
  }
  const bool by_row = tune(tuner, query, costs.data(), kAlgorithms, kProtocols, channels);
  const int best = cheapest(Row{}, costs.data(), kAlgorithms, kProtocols);
  if (!tuner.on || best < 0) return;
  const int a = best / kProtocols, p = best % kProtocols;
  const bool safe = (a == kTree || a == kRing) && p != kLl128;
  if (!safe && !(by_row && costs[static_cast<size_t>(best)] == kChosen)) return;
  *algorithm = a;
  *protocol = p;
}

}  // namespace bitrail::plugin::tuner
