// Where a drawing puts the operations of a rank: one track for each lane, for sends and for
// receives, and more of them where operations of one track overlap in time.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/timeline.h"

namespace bitrail::schedule {

struct Tracks {
  std::vector<std::string> names;  // by track: "lane 0", "send", "recv", "recv 2"
  std::vector<size_t> of;          // by operation: its track
};
Tracks assign_tracks(const Schedule& schedule, const std::vector<Span>& spans);

}  // namespace bitrail::schedule
