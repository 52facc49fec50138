// Which network ports serve which GPU, and the rails between nodes.
#pragma once

#include <vector>

#include "runtime/topology/model.h"
#include "runtime/topology/path.h"

namespace bitrail::topology {

// Ports with the smallest path type from a place, ties included. Plain Ethernet counts only in a
// machine without RDMA ports.
struct Nearest {
  Path path = Path::dis;
  std::vector<int> ports;
};
Nearest nearest_ports(const Machine& machine, Place from);

// Those of `ports` that no other of them outruns.
std::vector<int> fastest(const Machine& machine, const std::vector<int>& ports);

// Ports that are nearest to at least one GPU (without GPUs: to at least one NUMA node), in the
// machine's order. Port i of this list is on rail i.
std::vector<int> rails(const Machine& machine);
// The same with the fastest of each GPU's nearest only: those that carry traffic.
std::vector<int> fast_rails(const Machine& machine);
// Cards: ports that are functions of one PCI device count once.
int cards(const Machine& machine, const std::vector<int>& ports);

// Deals fast_rails() to the GPUs, so that each port carries its share: every GPU gets at least one
// of its nearest, the least loaded; ports left over go to the GPU that has the fewest. Without
// GPUs it deals to the NUMA nodes.
std::vector<std::vector<int>> deal_ports(const Machine& machine);

}  // namespace bitrail::topology
