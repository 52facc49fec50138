// What `bitrail perf bw` and `lat` do at one size.
#pragma once

#include <cstdint>

#include "tools/bitrail/perf/link.h"
#include "tools/bitrail/perf/link_options.h"

namespace bitrail::tool {

// Equal at both ranks.
struct StreamFigures {
  uint64_t bytes = 0, iterations = 0;
  uint64_t wrong = 0;  // bytes that were not what was sent
  // bw: as they arrive, in 2^20 bytes a second (peak: over one window) and million messages.
  double peak = 0, average = 0, message_rate = 0;
  // lat: microseconds one way.
  double t_min = 0, t_max = 0, t_typical = 0, t_average = 0, t_99 = 0;
};

Status measure_bandwidth(Link* link, const LinkOptions& options, size_t bytes,
                         StreamFigures* figures);
Status measure_latency(Link* link, const LinkOptions& options, size_t bytes,
                       StreamFigures* figures);

}  // namespace bitrail::tool
