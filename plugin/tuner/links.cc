#include "plugin/tuner/links.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <mutex>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "runtime/topology/read.h"

namespace bitrail::plugin::tuner {
namespace {

using topology::Cluster;
using topology::Machine;

constexpr double kUnknownPortMbps = 10'000;

struct Inside {
  bool nvlink = false;
  double gbs = 12;  // PCI 3, 16 lanes
  int sm = 0;
};

// Can every GPU be reached from the first one over NVLink?
bool nvlink_joins_all(const std::vector<topology::NvPair>& pairs, size_t gpus) {
  std::vector<size_t> found = {0};
  std::vector<bool> seen(gpus);
  seen[0] = true;
  for (size_t i = 0; i < found.size(); i++) {
    for (size_t other = 0; other < gpus; other++) {
      if (seen[other] || pairs[found[i] * gpus + other].bandwidth <= 0) continue;
      seen[other] = true;
      found.push_back(other);
    }
  }
  return found.size() == gpus;
}

// All NVLinks of the GPU that has the least of them: rings and trees use every link.
double least_nvlink(const Machine& machine, const std::vector<topology::NvPair>& pairs) {
  const size_t gpus = machine.gpus.size();
  double least = INFINITY;
  for (size_t gpu = 0; gpu < gpus; gpu++) {
    double by_switch = 0, direct = 0;
    for (size_t other = 0; other < gpus; other++) {
      const topology::NvPair& pair = pairs[gpu * gpus + other];
      if (pair.by_switch) {
        by_switch = std::max(by_switch, pair.bandwidth);
      } else {
        direct += pair.bandwidth;
      }
    }
    least = std::min(least, by_switch + direct);
  }
  return least;
}

// The narrowest route of a ring over the GPUs in their order.
double narrowest_route(const Machine& machine) {
  const topology::Routes routes = topology::find_routes(machine);
  double least = INFINITY;
  for (size_t gpu = 0; gpu < routes.gpus; gpu++) {
    least = std::min(least, routes.to_gpu(gpu, (gpu + 1) % routes.gpus).bandwidth);
  }
  return least;
}

Inside inside_of(const Machine& machine) {
  Inside inside;
  const size_t gpus = machine.gpus.size();
  if (gpus == 0) return inside;
  inside.sm = machine.gpus[0].sm;
  for (const topology::Gpu& gpu : machine.gpus) inside.sm = std::min(inside.sm, gpu.sm);
  if (gpus == 1) {
    double gbs = 0;  // to GPUs of other nodes
    for (const topology::NvLink& link : machine.links) {
      if (link.target == topology::LinkTarget::nvswitch) gbs += link.bandwidth;
    }
    inside.nvlink = gbs > 0;
    if (inside.nvlink) inside.gbs = gbs;
    return inside;
  }
  const std::vector<topology::NvPair> pairs = topology::nvlink_pairs(machine);
  inside.nvlink = nvlink_joins_all(pairs, gpus);
  const double gbs = inside.nvlink ? least_nvlink(machine, pairs) : narrowest_route(machine);
  if (std::isfinite(gbs) && gbs > 0) inside.gbs = gbs;
  return inside;
}

// Of the ports that carry traffic, as many as `local` ranks of all GPUs come to.
double between_of(const Machine& machine, int64_t local) {
  std::vector<double> ports;
  for (const int index : topology::fast_rails(machine)) {
    const topology::Port& port = machine.ports[static_cast<size_t>(index)];
    double gbs = (port.mbps > 0 ? port.mbps : kUnknownPortMbps) / 8000;
    if (port.pci >= 0) {
      const double slot = machine.pci[static_cast<size_t>(port.pci)].bandwidth;
      if (slot > 0) gbs = std::min(gbs, slot);
    }
    ports.push_back(gbs);
  }
  if (ports.empty()) return kUnknownPortMbps / 8000;
  const auto gpus = static_cast<int64_t>(std::max<size_t>(machine.gpus.size(), 1));
  const auto count = static_cast<int64_t>(ports.size());
  const int64_t used = std::clamp<int64_t>((count * local + gpus - 1) / gpus, 1, count);
  std::sort(ports.begin(), ports.end());
  double sum = 0;
  for (int64_t i = 0; i < used; i++) sum += ports[static_cast<size_t>(i)];
  return sum;
}

}  // namespace

System system_of(const Cluster& cluster, int64_t ranks, int64_t nodes) {
  System system;
  system.ranks = ranks;
  system.nodes = nodes;
  system.local = (ranks + nodes - 1) / nodes;
  system.nvlink_between = cluster.one_nvlink_domain;
  bool first = true;
  for (const Machine& machine : cluster.kinds) {
    const Inside inside = inside_of(machine);
    const double between = system.nvlink_between ? inside.gbs : between_of(machine, system.local);
    system.inside_gbs = first ? inside.gbs : std::min(system.inside_gbs, inside.gbs);
    system.between_gbs = first ? between : std::min(system.between_gbs, between);
    system.nvlink = (first || system.nvlink) && inside.nvlink;
    system.sm = first ? inside.sm : std::min(system.sm, inside.sm);
    first = false;
  }
  return system;
}

Status find_system(const config::Settings& settings, int64_t ranks, int64_t nodes, System* system,
                   std::string* origin) {
  struct Known {
    Cluster cluster;
    std::string origin;
  };
  // Never destroyed: NCCL's threads may outlive static objects.
  static std::mutex& mutex = *new std::mutex;
  static std::map<std::string, Known>& known = *new std::map<std::string, Known>;
  *system = system_of({}, ranks, nodes);
  const char* nccl = std::getenv("NCCL_TOPO_FILE");
  std::string key = settings.topo_file;
  if (key.empty() && nccl != nullptr) key = nccl;
  const std::lock_guard lock(mutex);
  auto found = known.find(key);
  if (found == known.end()) {
    Known read;
    BITRAIL_TRY(topology::read_topology(settings, &read.cluster, &read.origin));
    found = known.emplace(key, std::move(read)).first;
  }
  *system = system_of(found->second.cluster, ranks, nodes);
  *origin = found->second.origin;
  return {};
}

}  // namespace bitrail::plugin::tuner
