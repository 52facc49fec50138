// One RC queue pair: made, connected, posted to, ended. And the completion queues, which many
// share.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/verbs/device.h"
#include "runtime/transport/verbs/message.h"

namespace bitrail::transport::verbs {

class Link;

// A completion queue with places for `used` of its `capacity` completions promised to queue pairs,
// so that it cannot overrun.
struct CompletionQueue {
  ibv_cq* cq = nullptr;
  int capacity = 0, used = 0;
};

struct QueuePair {
  Link* link = nullptr;
  std::shared_ptr<Port> port;
  CompletionQueue* completions = nullptr;
  ibv_qp* qp = nullptr;
  uint32_t id = 0;  // in wr_id: completions of queue pairs that are gone find nothing
  int index = 0, rail = 0;
  uint32_t psn = 0;
  uint32_t inline_bytes = 0;
  uint8_t mtu = 0;    // ibv_mtu
  double weight = 1;  // speed
  double clock = 0;   // what it was given to carry / weight
  bool ready_to_receive = false, ready_to_send = false;

  // The send queue: work requests posted and, as far as completions tell, finished.
  uint32_t send_depth = 0, posted = 0, retired = 0, unsignaled = 0;
  struct Mark {
    uint32_t posted;         // with this signaled one
    uint32_t send_id;        // whose last part it is; 0: nobody's
    uint32_t ring_position;  // the ring is sent up to here
  };
  std::vector<Mark> marks;  // of signaled ones in flight, a ring
  uint32_t first_mark = 0, next_mark = 0;
  // The receive queue.
  uint32_t receive_depth = 0, missing_receives = 0;
};

// Work requests kept for credits and words, which must always find room.
constexpr uint32_t kSendReserve = 24;

struct QueuePairSize {
  uint32_t sends, receives;  // without the reserve; clamped to what the device has
};

// In state INIT, with receives posted. `self` must not move afterwards. The caller has set link,
// port, completions, id, index and rail.
Status create_queue_pair(const IbOptions& options, const QueuePairSize& size, QueuePair* self);
// Most completions that it can cause.
int completions_of(const QueuePairSize& size);
QueuePairFacts facts_of(const QueuePair& self);
// INIT to RTR to RTS. *again: the device timed out, call again a little later. `peer` is for
// messages.
Status connect_queue_pair(const IbOptions& options, const QueuePairFacts& theirs,
                          const std::string& peer, QueuePair* self, bool* again);
// When it returns nothing goes out or comes in any more.
void destroy_queue_pair(QueuePair* self);

inline bool send_room(const QueuePair& self, uint32_t requests) {
  return self.posted - self.retired + requests + kSendReserve <= self.send_depth;
}
// Sets wr_id and asks for a completion where one is due; `signaled` insists, then with `send_id`.
// An errno.
int post_send(QueuePair* self, ibv_send_wr* work, bool signaled, uint32_t send_id,
              uint32_t ring_position);
// The mark of a successful send's completion. False when the device reports what was never posted.
bool retire_sends(QueuePair* self, uint64_t wr_id, QueuePair::Mark* mark);
// Gives back receives that completions have used up, in batches (`flush`: all). An errno.
int refill_receives(QueuePair* self, bool flush);

}  // namespace bitrail::transport::verbs
