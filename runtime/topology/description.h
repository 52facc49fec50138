// The compact text form for clusters that nobody here has. Each line is a group of equal nodes:
//
//   nodes=32 gpus=8 nvlink=18 nics=8 nic=400G   # 32 x 8 H100
//
// Keys, all optional: nodes, gpus, gpu (compute capability: 90, or v100, a100, h100, h200, b200),
// nvlink (links of each GPU to NVSwitches), nvlink_gbs (of one link), c2c_gbs, nics, nic (bits a
// second: 400G, 100M), sockets, numa (nodes of a socket), pcie (generation), lanes, switches (PCI
// switches; 0: all at the host bridges), mnnvl (1: NVLink joins all nodes; on the first line).
#pragma once

#include <string_view>

#include "runtime/common/status.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

// `name` is the text's, for messages: "NAME:LINE: gpus=...".
Status read_description(std::string_view text, const std::string& name, Cluster* cluster);

}  // namespace bitrail::topology
