#include "tools/bitrail/bind.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>

#include <climits>
#include <memory>

namespace bitrail::tool {
namespace {

struct Free {
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, Free>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, Free>;

// This machine's, without the processors that this process may not use.
Status load(Topology* topology) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return failure(BITRAIL_ERR_SYSTEM, "hwloc does not start");
  topology->reset(made);
  if (hwloc_topology_load(made) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "hwloc does not understand this machine");
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (allowed == nullptr || hwloc_get_cpubind(made, allowed.get(), HWLOC_CPUBIND_PROCESS) != 0 ||
      hwloc_topology_restrict(made, allowed.get(), 0) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "the processors of this process are unknown");
  return {};
}

}  // namespace

Status share_processors(int ranks, std::vector<cpu_set_t>* shares) {
  shares->clear();
  Topology topology;
  BITRAIL_TRY(load(&topology));
  if (hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_PU) < ranks) return {};
  std::vector<hwloc_cpuset_t> sets(static_cast<size_t>(ranks), nullptr);
  hwloc_obj_t root = hwloc_get_root_obj(topology.get());
  if (hwloc_distrib(topology.get(), &root, 1, sets.data(), static_cast<unsigned>(ranks), INT_MAX,
                    0) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "hwloc cannot distribute {} ranks", ranks);
  for (hwloc_cpuset_t set : sets) {
    const Bitmap owned(set);
    cpu_set_t share;
    CPU_ZERO(&share);
    if (set == nullptr ||
        hwloc_cpuset_to_glibc_sched_affinity(topology.get(), set, &share, sizeof share) != 0)
      return failure(BITRAIL_ERR_SYSTEM, "hwloc gave a rank no processors");
    shares->push_back(share);
  }
  return {};
}

}  // namespace bitrail::tool
