#include "runtime/schedule/timeline.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace bitrail::schedule {

Timeline unit_timeline(const std::vector<Schedule>& ranks) {
  std::map<std::tuple<int, int, uint32_t>, std::pair<size_t, OperationId>> sends;
  Timeline timeline;
  for (size_t rank = 0; rank < ranks.size(); rank++) {
    timeline.ranks.emplace_back(ranks[rank].operations.size());
    for (OperationId id = 0; id < ranks[rank].operations.size(); id++) {
      const Operation& o = ranks[rank].operations[id];
      if (o.kind->meaning == Meaning::send)
        sends[{ranks[rank].rank, o.peer, o.message}] = {rank, id};
    }
  }
  // Edges within a rank point backwards, messages do not: repeat until nothing moves any more. The
  // longest chain of messages bounds the rounds (and stops schedules that would wait for ever).
  size_t rounds = 1;
  for (const Schedule& schedule : ranks) rounds += schedule.operations.size();
  for (bool moved = true; moved && rounds > 0; rounds--) {
    moved = false;
    for (size_t rank = 0; rank < ranks.size(); rank++)
      for (OperationId id = 0; id < ranks[rank].operations.size(); id++) {
        const Operation& o = ranks[rank].operations[id];
        double begin = 0;
        for (OperationId before : o.after)
          begin = std::max(begin, timeline.ranks[rank][before].end);
        if (o.kind->meaning == Meaning::recv)
          if (const auto send = sends.find({o.peer, ranks[rank].rank, o.message});
              send != sends.end())
            begin = std::max(begin, timeline.ranks[send->second.first][send->second.second].end);
        Span& span = timeline.ranks[rank][id];
        moved = moved || span.end != begin + 1;
        span = {begin, begin + 1};
        timeline.end = std::max(timeline.end, span.end);
      }
  }
  return timeline;
}

}  // namespace bitrail::schedule
