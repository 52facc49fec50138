// Writes a schedule operation by operation and derives the edges: an operation comes after whoever
// wrote what it reads, and after whoever read or wrote what it writes.
//
// Overlap is tested symbolically (no counts exist yet): same buffer, same slot, and parts that are
// not surely apart. Different cuts of one buffer (chunks of 4 against chunks of 8) count as
// overlapping, because rounding to quanta moves their borders.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace bitrail::schedule {

// False only where two ranges of one schedule share no element whatever the counts.
bool may_overlap(const Schedule& schedule, const Range& a, const Range& b);

class Builder {
 public:
  Builder(std::string name, int rank, int world_size);

  BufferId buffer(Buffer buffer);

  // Operations in the order of their priority: the engine starts ready ones by id.
  OperationId add(const OperationKind& kind, std::vector<Range> reads, std::vector<Range> writes,
                  std::vector<OperationId> after = {});
  // The whole operation, for attributes, lanes and nested schedules. `after` may hold further
  // edges.
  OperationId add(Operation operation);
  OperationId send(int peer, uint32_t message, const Range& from,
                   std::vector<OperationId> after = {});
  OperationId recv(int peer, uint32_t message, const Range& to,
                   std::vector<OperationId> after = {});
  // A message of 0 bytes: only its order counts.
  OperationId send_signal(int peer, uint32_t message, std::vector<OperationId> after = {});
  OperationId recv_signal(int peer, uint32_t message, std::vector<OperationId> after = {});
  // Runs `nested` here; `buffers` are its buffers in this schedule (flatten.h), what it reads and
  // writes of them counts as read and written.
  OperationId call(Schedule nested, std::vector<BufferId> buffers, uint32_t message_offset,
                   std::vector<int64_t> ranks = {});

  // The other ranks, starting behind (send) or before (receive) the own one, so that at each
  // moment every rank talks to a different one.
  std::vector<int> send_order() const;
  std::vector<int> recv_order() const;

  int rank() const { return schedule_.rank; }
  int world_size() const { return schedule_.world_size; }
  Schedule finish() { return std::move(schedule_); }

 private:
  struct Access {
    Range range;
    OperationId operation;
    bool write;
  };
  void derive(const Range& range, bool write, OperationId id, std::vector<OperationId>* after);
  void record(const Range& range, bool write, OperationId id);

  Schedule schedule_;
  // Per buffer: accesses that a later one may still have to wait for.
  std::vector<std::vector<Access>> live_;
};

}  // namespace bitrail::schedule
