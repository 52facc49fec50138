// Bandwidths of links by their kind, GB/s in one direction: the values that NCCL plans with.
#pragma once

#include "runtime/topology/model.h"

namespace bitrail::topology {

inline constexpr double kLocalBandwidth = 5000;

// A PCI link of `transfers` GT/s a lane (2.5, 5, 8, ... 64; 0: taken as 8) and `lanes` (0: 16).
// Three quarters of what the standard's figures promise. 0 for a speed that PCI does not have.
double pci_bandwidth(double transfers, int lanes);
// hwloc's figure for a link, GB/s of payload, in the measure of pci_bandwidth(). 0: not known,
// taken as 8 GT/s and 16 lanes.
double pci_bandwidth_of_hwloc(double speed);
// One NVLink of a GPU with this compute capability (0: not known).
double nvlink_bandwidth(int sm);
// One xGMI link of an AMD GPU, by gfx number (908, 910, 942; 0: not known).
double xgmi_bandwidth(int gfx);
// Between the sockets or NUMA nodes of a machine with such processors.
double socket_bandwidth(const Numa& numa);

}  // namespace bitrail::topology
