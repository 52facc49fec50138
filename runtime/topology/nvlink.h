// Which GPUs NVLink joins. NVSwitches that some GPU joins are one fabric.
#pragma once

#include <vector>

#include "runtime/topology/model.h"

namespace bitrail::topology {

struct NvPair {
  double bandwidth = 0;  // GB/s; 0: not joined
  int count = 0;         // links; 0: not known
  bool by_switch = false;
};

// Of all pairs of GPUs, directly or through NVSwitches: element a * GPUs + b. Where the two sides
// list different numbers, the smaller holds; a side that lists none is taken at the other's word.
std::vector<NvPair> nvlink_pairs(const Machine& machine);
// Links of a GPU to NVSwitches, all together.
int switch_links(const Machine& machine, int gpu);

}  // namespace bitrail::topology
