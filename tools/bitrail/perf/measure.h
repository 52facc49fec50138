// Times a case: medians over iterations, each the slowest rank's.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>

#include "tools/bitrail/perf/case.h"
#include "tools/bitrail/perf/options.h"

namespace bitrail::tool {

struct Figures {
  bool present = false;
  double time_us = 0;     // of one call
  double algbw = 0;       // GB/s: bytes / time
  double busbw = 0;       // GB/s: what the slowest link carries at least, nothing compressed
  double checked = -1;    // #wrong over all ranks, or the largest relative error; -1: not checked
  double wire_bytes = 0;  // sent by the rank that sends most, a call
  double wire_busbw = 0;  // GB/s: wire_bytes / time
  double ratio = 0;       // bytes that an uncompressed collective sends / wire_bytes
};

// Collective over all ranks, who all get the same figures.
bitrail_status_t measure(bitrail_comm_t comm, const PerfOptions& options, Case* subject,
                         bool in_place, Figures* figures);

}  // namespace bitrail::tool
