#include "runtime/schedule/flatten.h"

#include <algorithm>
#include <utility>

namespace bitrail::schedule {

namespace {

using Ids = std::vector<OperationId>;

void sort_unique(Ids* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

// Where an edge to an old operation leads now: that operation, or a call's last ones.
Ids translate_edges(const Ids& after, const std::vector<Ids>& ends) {
  Ids result;
  for (OperationId id : after)
    if (id < ends.size()) result.insert(result.end(), ends[id].begin(), ends[id].end());
  sort_unique(&result);
  return result;
}

std::vector<BufferId> place_buffers(const Operation& call, const Schedule& nested,
                                    Schedule* result) {
  std::vector<BufferId> placed = call.nested_buffers;
  for (size_t i = placed.size(); i < nested.buffers.size(); i++) {
    placed.push_back(static_cast<BufferId>(result->buffers.size()));
    result->buffers.push_back(nested.buffers[i]);
  }
  return placed;
}

// Appends the nested operations; returns the ids nothing inside waits for.
Ids inline_call(const Operation& call, Ids before, Schedule* result) {
  const Schedule nested = flatten(*call.nested);
  const std::vector<BufferId> buffers = place_buffers(call, nested, result);
  const auto base = static_cast<OperationId>(result->operations.size());
  std::vector<bool> waited_for(nested.operations.size());
  for (Operation operation : nested.operations) {
    for (OperationId& id : operation.after) {
      waited_for[id] = true;
      id += base;
    }
    if (operation.after.empty()) operation.after = before;
    for (Range& range : operation.reads) range.buffer = buffers[range.buffer];
    for (Range& range : operation.writes) range.buffer = buffers[range.buffer];
    if (operation.peer >= 0) {
      operation.message += call.message;
      if (static_cast<size_t>(operation.peer) < call.attributes.size())
        operation.peer = static_cast<int>(call.attributes[static_cast<size_t>(operation.peer)]);
    }
    result->operations.push_back(std::move(operation));
  }
  result->owned.insert(result->owned.end(), nested.owned.begin(), nested.owned.end());
  if (nested.operations.empty()) return before;
  Ids ends;
  for (size_t i = 0; i < waited_for.size(); i++)
    if (!waited_for[i]) ends.push_back(base + static_cast<OperationId>(i));
  return ends;
}

}  // namespace

Schedule flatten(const Schedule& schedule) {
  Schedule result = schedule;
  result.operations.clear();
  std::vector<Ids> ends;  // by old id: the new ids that finish it
  ends.reserve(schedule.operations.size());
  for (const Operation& old : schedule.operations) {
    Ids before = translate_edges(old.after, ends);
    if (old.nested && old.kind && old.kind->meaning == Meaning::call) {
      ends.push_back(inline_call(old, std::move(before), &result));
      continue;
    }
    Operation operation = old;
    operation.after = std::move(before);
    ends.push_back({static_cast<OperationId>(result.operations.size())});
    result.operations.push_back(std::move(operation));
  }
  return result;
}

}  // namespace bitrail::schedule
