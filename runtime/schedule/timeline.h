// When each operation of each rank runs: what the simulator finds and the drawings show.
#pragma once

#include <vector>

#include "runtime/schedule/schedule.h"

namespace bitrail::schedule {

struct Span {
  double begin = 0, end = 0;  // the model's unit; microseconds in the simulator
};
struct Timeline {
  std::vector<std::vector<Span>> ranks;  // by rank, by operation
  double end = 0;                        // of the last one
};

// One unit of time an operation, nothing in anybody's way: an operation begins when those before it
// have ended, a recv also when its send has. Shows a schedule's shape without counts. `ranks` may
// be some ranks only; a recv whose send is not among them waits for nobody. Flat schedules that
// verify.
Timeline unit_timeline(const std::vector<Schedule>& ranks);

}  // namespace bitrail::schedule
