// Kinds of paths between two devices, in NCCL's words and in its order: smaller is nearer.
#pragma once

#include <string_view>

namespace bitrail::topology {

enum class Path {
  loc,  // the same device
  nvl,  // NVLink (or xGMI), directly or through NVSwitches
  nvb,  // NVLink through one other GPU
  c2c,  // the coherent link between GPU and processor
  pix,  // at most one PCI switch
  pxb,  // several PCI switches, no host bridge
  p2c,  // c2c to the processor, then PCI
  pxn,  // to a NIC: NVLink to a GPU that is near it, then PCI
  phb,  // through the host bridge of one NUMA node
  sys,  // from one NUMA node to another
  net,  // between machines
  dis,  // none
};

// "PIX".
std::string_view name(Path path);
// What it means, for a legend.
std::string_view meaning(Path path);

}  // namespace bitrail::topology
