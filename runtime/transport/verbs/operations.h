// Messages in flight. All come from the worker's pools and are linked intrusively: nothing is
// allocated on the message path.
#pragma once

#include <infiniband/verbs.h>

#include "runtime/transport/tables.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/ring.h"

namespace bitrail::transport::verbs {

// So long a message goes with its entry through the ring; a longer one waits for a receive.
constexpr uint32_t kEagerBytes = 8 << 10;

// A range's keys at each rail of a connection.
struct Keys {
  uint32_t local[kMaxRails], remote[kMaxRails];
  ibv_mr* held[kMaxRails];  // of the registration cache, to be released; null: the caller's
};

// A buffer that waits at the receiver: a `clear` or `grant` entry, kept by the sender.
struct Target {
  uint64_t tag;
  Target* next;
  uint64_t address, bytes;
  uint32_t receive_id;
  uint32_t rkeys[kMaxRails];
};

struct SendOp {
  SendOp* next;
  SendOp* previous;
  SendOp* later;  // in a queue
  Request* user;
  const uint8_t* bytes;
  size_t size;
  uint64_t tag;
  uint32_t cookie;
  uint32_t send_id;  // of long ones
  int parts;         // QPs that have not finished
  bool announced, targeted;
  Target target;
  Keys keys;
};

struct ReceiveOp;

// One buffer of a receive.
struct Slot {
  uint64_t tag;
  Slot* next;   // in the TagQueue
  Slot* after;  // in the queue for clears or grants
  ReceiveOp* op;
  uint8_t* data;
  size_t capacity;
  uint32_t id;  // of long ones, 0 otherwise
  uint32_t cookie;
  uint32_t send_id;          // of the announced message that it waits to grant
  uint32_t arrived, wanted;  // masks of QPs; wanted 0: the record is not here
  size_t expected;
  int index;
  bool listed;            // in the TagQueue: a message may still meet it here
  bool queued;            // for a clear or a grant
  bool cleared, granted;  // the sender was told
  Keys keys;
};

struct ReceiveOp {
  ReceiveOp* next;
  ReceiveOp* previous;
  Request* user;
  int remaining;  // slots to fill, + 1 while being posted
  int count;
  // The first message that did not fit; size 0: none. Capacities below sizes, so size is never 0.
  size_t misfit_size, misfit_capacity;
  Slot slots[kMaxGroupedReceives];
};

// A message that nobody waits for yet.
struct EagerCopy {
  EagerCopy* next;
  uint8_t bytes[kEagerBytes];
};
struct Arrival {
  uint64_t tag;
  Arrival* next;
  EagerCopy* copy;  // null: in `small`
  size_t bytes;
  uint64_t order;
  uint32_t cookie;
  uint32_t send_id;  // 0: eager; else it is still at the sender
  uint8_t small[128];
};

// First in, first out, through a member.
template <typename T, T* T::*kNext>
struct Fifo {
  T* first = nullptr;
  T* last = nullptr;

  void push(T* item) {
    item->*kNext = nullptr;
    (last != nullptr ? last->*kNext : first) = item;
    last = item;
  }
  T* pop() {
    T* item = first;
    if (item == nullptr) return nullptr;
    first = item->*kNext;
    if (first == nullptr) last = nullptr;
    return item;
  }
  void remove(T* item) {
    T* before = nullptr;
    for (T* at = first; at != nullptr; before = at, at = at->*kNext) {
      if (at != item) continue;
      (before != nullptr ? before->*kNext : first) = at->*kNext;
      if (last == at) last = before;
      return;
    }
  }
};

}  // namespace bitrail::transport::verbs
