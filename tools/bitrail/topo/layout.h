// Where the parts of a machine stand in its picture.
#pragma once

#include <string>
#include <vector>

#include "runtime/topology/model.h"

namespace bitrail::tool {

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  std::string title;
  int depth = 0;  // 0: NUMA node; deeper: PCI switches
  double middle() const { return x + width / 2; }
};

struct Layout {
  std::vector<Box> frames;                // NUMA nodes and switches, outer ones first
  std::vector<Box> gpus, ports;           // by their numbers in the machine
  double width = 0, top = 0, bottom = 0;  // of the frames
};

// Places frames from `top` down. Devices that are neither GPU nor port are left out, and switches
// that hold none.
Layout lay_out(const topology::Machine& machine, double left, double top);

}  // namespace bitrail::tool
