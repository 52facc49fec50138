#include "runtime/schedule/builder.h"

#include <algorithm>

namespace bitrail::schedule {

bool may_overlap(const Schedule& schedule, const Range& a, const Range& b) {
  if (a.buffer != b.buffer || a.slot != b.slot) return false;
  const Buffer& buffer = schedule.buffers[a.buffer];
  if (buffer.pieces > 1) return true;  // the slot is one piece: whatever stands there, it is there
  if (buffer.fraction <= 1) {
    if (a.chunks != b.chunks) return true;
    if (a.chunk >= b.chunk + b.span || b.chunk >= a.chunk + a.span) return false;
  }
  return a.pieces != b.pieces || a.piece == b.piece;
}

namespace {

// Whether a later access that conflicts with `old` surely conflicts with `next` too.
bool covers(const Schedule& schedule, const Range& next, const Range& old) {
  if (next.slot != old.slot) return false;
  if (next == old) return true;
  const Buffer& buffer = schedule.buffers[next.buffer];
  if (buffer.pieces > 1) return true;
  const bool whole_slot = next.pieces == 1 && (next.chunks == 1 || buffer.fraction > 1);
  const bool same_chunks = next.chunks == old.chunks && next.chunk <= old.chunk &&
                           old.chunk + old.span <= next.chunk + next.span;
  return whole_slot || (next.pieces == 1 && same_chunks);
}

void sort_unique(std::vector<OperationId>* ids) {
  std::sort(ids->begin(), ids->end());
  ids->erase(std::unique(ids->begin(), ids->end()), ids->end());
}

}  // namespace

Builder::Builder(std::string name, int rank, int world_size) {
  schedule_.name = std::move(name);
  schedule_.rank = rank;
  schedule_.world_size = world_size;
}

BufferId Builder::buffer(Buffer buffer) {
  schedule_.buffers.push_back(std::move(buffer));
  live_.emplace_back();
  return static_cast<BufferId>(schedule_.buffers.size() - 1);
}

void Builder::derive(const Range& range, bool write, OperationId id,
                     std::vector<OperationId>* after) {
  for (const Access& access : live_[range.buffer]) {
    if (access.operation == id || (!write && !access.write)) continue;
    if (may_overlap(schedule_, range, access.range)) after->push_back(access.operation);
  }
}

void Builder::record(const Range& range, bool write, OperationId id) {
  std::vector<Access>& live = live_[range.buffer];
  // Whoever has to wait for what this write covers waits for this write, which waited for them.
  if (write)
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&](const Access& access) {
                                return access.operation != id &&
                                       covers(schedule_, range, access.range);
                              }),
               live.end());
  live.push_back({range, id, write});
}

OperationId Builder::add(Operation operation) {
  const auto id = static_cast<OperationId>(schedule_.operations.size());
  for (const Range& range : operation.reads) derive(range, false, id, &operation.after);
  for (const Range& range : operation.writes) derive(range, true, id, &operation.after);
  for (const Range& range : operation.reads) record(range, false, id);
  for (const Range& range : operation.writes) record(range, true, id);
  sort_unique(&operation.after);
  schedule_.operations.push_back(std::move(operation));
  return id;
}

OperationId Builder::add(const OperationKind& kind, std::vector<Range> reads,
                         std::vector<Range> writes, std::vector<OperationId> after) {
  Operation operation;
  operation.kind = &kind;
  operation.reads = std::move(reads);
  operation.writes = std::move(writes);
  operation.after = std::move(after);
  return add(std::move(operation));
}

namespace {

Operation message_operation(const OperationKind& kind, int peer, uint32_t message,
                            std::vector<OperationId> after) {
  Operation operation;
  operation.kind = &kind;
  operation.peer = peer;
  operation.message = message;
  operation.after = std::move(after);
  return operation;
}

}  // namespace

OperationId Builder::send(int peer, uint32_t message, const Range& from,
                          std::vector<OperationId> after) {
  Operation operation = message_operation(kSend, peer, message, std::move(after));
  operation.reads.push_back(from);
  return add(std::move(operation));
}

OperationId Builder::recv(int peer, uint32_t message, const Range& to,
                          std::vector<OperationId> after) {
  Operation operation = message_operation(kRecv, peer, message, std::move(after));
  operation.writes.push_back(to);
  return add(std::move(operation));
}

OperationId Builder::send_signal(int peer, uint32_t message, std::vector<OperationId> after) {
  return add(message_operation(kSend, peer, message, std::move(after)));
}

OperationId Builder::recv_signal(int peer, uint32_t message, std::vector<OperationId> after) {
  return add(message_operation(kRecv, peer, message, std::move(after)));
}

OperationId Builder::call(Schedule nested, std::vector<BufferId> buffers, uint32_t message_offset,
                          std::vector<int64_t> ranks) {
  auto owned = std::make_shared<const Schedule>(std::move(nested));
  Operation operation;
  operation.kind = &kCall;
  operation.message = message_offset;
  operation.nested = owned.get();
  operation.attributes = std::move(ranks);
  const auto translate = [&](const std::vector<Range>& from, std::vector<Range>* to) {
    for (Range range : from) {
      if (range.buffer >= buffers.size()) continue;  // its own scratch
      range.buffer = buffers[range.buffer];
      if (std::find(to->begin(), to->end(), range) == to->end()) to->push_back(range);
    }
  };
  for (const Operation& inner : owned->operations) {
    translate(inner.reads, &operation.reads);
    translate(inner.writes, &operation.writes);
  }
  operation.nested_buffers = std::move(buffers);
  schedule_.owned.push_back(std::move(owned));
  return add(std::move(operation));
}

std::vector<int> Builder::send_order() const {
  std::vector<int> peers;
  for (int i = 1; i < world_size(); i++) peers.push_back((rank() + i) % world_size());
  return peers;
}

std::vector<int> Builder::recv_order() const {
  std::vector<int> peers;
  for (int i = 1; i < world_size(); i++)
    peers.push_back((rank() - i + world_size()) % world_size());
  return peers;
}

}  // namespace bitrail::schedule
