#include "runtime/topology/nvlink.h"

#include <algorithm>
#include <numeric>

namespace bitrail::topology {
namespace {

// For each GPU the number of the fabric its switches belong to; -1: none.
std::vector<int> fabrics(const Machine& machine) {
  std::vector<int> of_switch(machine.nvswitches.size());
  std::iota(of_switch.begin(), of_switch.end(), 0);
  std::vector<int> of_gpu(machine.gpus.size(), -1);
  for (const NvLink& link : machine.links) {
    if (link.target != LinkTarget::nvswitch) continue;
    int& gpu = of_gpu[static_cast<size_t>(link.gpu)];
    const int fabric = of_switch[static_cast<size_t>(link.peer)];
    if (gpu < 0) gpu = fabric;
    if (gpu == fabric) continue;
    const int kept = std::min(gpu, fabric), gone = std::max(gpu, fabric);
    std::ranges::replace(of_switch, gone, kept);
    std::ranges::replace(of_gpu, gone, kept);
  }
  return of_gpu;
}

NvPair join(NvPair a, NvPair b) {
  if (a.bandwidth == 0) a = b;
  if (b.bandwidth == 0) b = a;
  return {std::min(a.bandwidth, b.bandwidth), std::min(a.count, b.count), false};
}

void add(const NvLink& link, NvPair* side) {
  side->bandwidth += link.bandwidth;
  side->count += link.count;
}

}  // namespace

std::vector<NvPair> nvlink_pairs(const Machine& machine) {
  const size_t gpus = machine.gpus.size();
  std::vector<NvPair> listed(gpus * gpus), to_switches(gpus), pairs(gpus * gpus);
  for (const NvLink& link : machine.links) {
    const auto gpu = static_cast<size_t>(link.gpu);
    if (link.target == LinkTarget::gpu)
      add(link, &listed[gpu * gpus + static_cast<size_t>(link.peer)]);
    if (link.target == LinkTarget::nvswitch) add(link, &to_switches[gpu]);
  }
  const std::vector<int> fabric = fabrics(machine);
  for (size_t a = 0; a < gpus; a++) {
    for (size_t b = 0; b < gpus; b++) {
      if (a == b) continue;
      NvPair& pair = pairs[a * gpus + b];
      pair = join(listed[a * gpus + b], listed[b * gpus + a]);
      if (pair.bandwidth > 0 || fabric[a] < 0 || fabric[a] != fabric[b]) continue;
      pair = join(to_switches[a], to_switches[b]);
      pair.by_switch = true;
    }
  }
  return pairs;
}

int switch_links(const Machine& machine, int gpu) {
  int count = 0;
  for (const NvLink& link : machine.links)
    if (link.target == LinkTarget::nvswitch && link.gpu == gpu) count += link.count;
  return count;
}

}  // namespace bitrail::topology
