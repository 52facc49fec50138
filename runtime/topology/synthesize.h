// A machine from a few numbers.
#pragma once

#include "runtime/topology/model.h"

namespace bitrail::topology {

// As the description says; -1: not said.
struct Shape {
  double nodes = 1;
  double gpus = 0;
  double gpu = 0;  // compute capability
  double nvlink = 0;
  double nvlink_gbs = -1;  // as NCCL counts for `gpu`
  double c2c_gbs = 0;
  double nics = 1;
  double nic_mbps = 0;
  double sockets = -1;  // two where there are GPUs for both
  double numa = 1;
  double pcie = 4;
  double lanes = 16;
  double switches = -1;  // as many as let each have a GPU and a NIC
  double mnnvl = 0;
};

inline constexpr size_t kMaxGroups = 256;

// GPUs, NICs and switches are dealt to the NUMA nodes, GPUs and NICs to the switches, in equal
// blocks: GPU 0 and NIC 0 are near each other.
Machine synthesize(const Shape& shape);

}  // namespace bitrail::topology
