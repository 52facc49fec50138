// Schedules for people: text, Chrome trace JSON (opens in Perfetto), SVG.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/schedule.h"
#include "runtime/schedule/timeline.h"

namespace bitrail::schedule {

// One rank: its buffers, and an operation a line with what it reads, writes and comes after.
std::string draw_text(const Schedule& schedule);

// "input 2/4.0/3": chunk 2 of 4, of that piece 0 of 3; "received[1] ..." in a buffer with slots.
std::string range_text(const Schedule& schedule, const Range& range);

// Any ranks on a timeline (unit_timeline, or a simulation's): a process a rank; compute lanes,
// sends and receives as threads of it. One unit of the timeline is shown as one microsecond.
std::string draw_chrome(const std::vector<Schedule>& ranks, const Timeline& timeline);

// The same as one picture, time from left to right, hovering shows the operation.
std::string draw_svg(const std::vector<Schedule>& ranks, const Timeline& timeline);

}  // namespace bitrail::schedule
