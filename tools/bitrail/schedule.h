// `bitrail schedule`: shows what an algorithm does, as text, Chrome trace or SVG.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/common/status.h"

namespace bitrail::tool {

struct ScheduleOptions {
  std::string collective = "allreduce";
  std::string algo;  // empty: as the planner chooses
  int world_size = 4;
  int rank = -1;  // -1: all
  int root = 0;
  uint32_t pieces = 0;  // of a chunk; 0: as the planner chooses
  uint32_t depth = 0;
  bool in_place = false;
  bool block = false;            // 1 bit: scales inside the records
  uint64_t elements = 1U << 20;  // float32
  int ranks_per_node = 0;        // placement in blocks of so many; 0: not known
  bool cyclic = false;           // the same nodes, ranks dealt out in turn
  std::string format = "text";   // text, chrome, svg
  // The simulator's link; 0 Mbit/s: one unit of time an operation instead of a simulation.
  double mbps = 0;
  double us = 10;
};

// The drawing. Schedules that do not verify are refused with what is wrong with them.
Status show_schedule(const ScheduleOptions& options, std::string* text);

int schedule_main(int argc, char** argv);

}  // namespace bitrail::tool
