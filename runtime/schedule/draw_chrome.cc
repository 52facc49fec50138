// The trace event format: "X" a complete event, "M" a name, "s" and "f" the two ends of an arrow.
#include <fmt/core.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "runtime/schedule/draw.h"
#include "runtime/schedule/tracks.h"

namespace bitrail::schedule {

namespace {

using nlohmann::json;

json name_event(const char* what, int process, size_t thread, const std::string& name) {
  return {
      {"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

json texts(const Schedule& schedule, const std::vector<Range>& ranges) {
  json list = json::array();
  for (const Range& range : ranges) list.push_back(range_text(schedule, range));
  return list;
}

std::string title(const Operation& o) {
  if (o.peer < 0) return o.kind->name;
  return fmt::format("{} {} {}", o.kind->name, o.kind->meaning == Meaning::recv ? "from" : "to",
                     o.peer);
}

}  // namespace

std::string draw_chrome(const std::vector<Schedule>& ranks, const Timeline& timeline) {
  json events = json::array();
  std::map<std::tuple<int, int, uint32_t>, int> arrows;  // from, to, message: number
  for (size_t r = 0; r < ranks.size(); r++) {
    const Schedule& schedule = ranks[r];
    const Tracks tracks = assign_tracks(schedule, timeline.ranks[r]);
    events.push_back(name_event("process_name", schedule.rank, 0,
                                fmt::format("rank {}: {}", schedule.rank, schedule.name)));
    for (size_t track = 0; track < tracks.names.size(); track++)
      events.push_back(name_event("thread_name", schedule.rank, track, tracks.names[track]));
    for (OperationId id = 0; id < schedule.operations.size(); id++) {
      const Operation& o = schedule.operations[id];
      const Span& span = timeline.ranks[r][id];
      events.push_back({{"ph", "X"},
                        {"name", title(o)},
                        {"cat", o.kind->name},
                        {"pid", schedule.rank},
                        {"tid", tracks.of[id]},
                        {"ts", span.begin},
                        {"dur", span.end - span.begin},
                        {"args",
                         {{"id", id},
                          {"message", o.message},
                          {"reads", texts(schedule, o.reads)},
                          {"writes", texts(schedule, o.writes)},
                          {"after", o.after}}}});
      const bool sends = o.kind->meaning == Meaning::send;
      if (!sends && o.kind->meaning != Meaning::recv) continue;
      const auto key = sends ? std::tuple(schedule.rank, o.peer, o.message)
                             : std::tuple(o.peer, schedule.rank, o.message);
      const auto number = arrows.try_emplace(key, static_cast<int>(arrows.size())).first->second;
      json arrow = {{"ph", sends ? "s" : "f"},
                    {"name", "message"},
                    {"cat", "message"},
                    {"id", number},
                    {"pid", schedule.rank},
                    {"tid", tracks.of[id]},
                    {"ts", sends ? span.begin : span.end}};
      if (!sends) arrow["bp"] = "e";
      events.push_back(std::move(arrow));
    }
  }
  return json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(1) + "\n";
}

}  // namespace bitrail::schedule
