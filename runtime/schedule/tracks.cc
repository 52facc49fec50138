#include "runtime/schedule/tracks.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace bitrail::schedule {

namespace {

// Sorts before its rows: lanes, then sends, then receives.
using Group = std::pair<int, uint32_t>;

Group group_of(const Operation& operation) {
  if (operation.kind->meaning == Meaning::send) return {1, 0};
  if (operation.kind->meaning == Meaning::recv) return {2, 0};
  return {0, operation.lane};
}

std::string group_name(const Group& group, size_t row) {
  std::string name = group.first == 1   ? "send"
                     : group.first == 2 ? "recv"
                                        : fmt::format("lane {}", group.second);
  return row == 0 ? name : fmt::format("{} ({})", name, row + 1);
}

}  // namespace

Tracks assign_tracks(const Schedule& schedule, const std::vector<Span>& spans) {
  std::vector<OperationId> order(schedule.operations.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](OperationId a, OperationId b) { return spans[a].begin < spans[b].begin; });
  std::map<Group, std::vector<double>> rows;  // when each row is free again
  std::vector<size_t> row_of(order.size());
  for (OperationId id : order) {
    std::vector<double>& free_at = rows[group_of(schedule.operations[id])];
    size_t row = 0;
    while (row < free_at.size() && free_at[row] > spans[id].begin) row++;
    if (row == free_at.size()) free_at.push_back(0);
    free_at[row] = spans[id].end;
    row_of[id] = row;
  }
  Tracks tracks;
  std::map<Group, size_t> first;
  for (const auto& [group, free_at] : rows) {
    first[group] = tracks.names.size();
    for (size_t row = 0; row < free_at.size(); row++)
      tracks.names.push_back(group_name(group, row));
  }
  for (OperationId id = 0; id < row_of.size(); id++)
    tracks.of.push_back(first[group_of(schedule.operations[id])] + row_of[id]);
  return tracks;
}

}  // namespace bitrail::schedule
