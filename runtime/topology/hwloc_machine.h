// A machine from what hwloc knows.
#pragma once

#include <hwloc.h>

#include <memory>

#include "runtime/common/status.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

struct FreeTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, FreeTopology>;

// `topology` is loaded, with all I/O objects. A PCI switch is two bridges there (upstream and
// downstream port) and a root port is one: going up from a device, every second bridge is a switch.
Status machine_of(hwloc_topology_t topology, Machine* machine);

}  // namespace bitrail::topology
