// NVLinks from hwloc's matrix of bandwidths.
#pragma once

#include <hwloc.h>

#include <map>

#include "runtime/topology/model.h"

namespace bitrail::topology {

// Numbers in the machine, by hwloc's objects.
struct HwlocDevices {
  std::map<hwloc_obj_t, int> gpus, switches, numas;
};

// Adds the links of the matrices "NVLinkBandwidth" and "XGMIBandwidth", if there are any.
void read_hwloc_links(hwloc_topology_t topology, const HwlocDevices& devices, Machine* machine);

}  // namespace bitrail::topology
