// Messages in flight. All come from the worker's pools and are linked intrusively: nothing is
// allocated on the message path.
#pragma once

#include "runtime/transport/tables.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx/message.h"

namespace bitrail::transport::ucx {

class UcxSender;
class UcxReceiver;
class Worker;
struct Endpoint;

// A message, a control message (no owner) or a chunk of a long message (has a parent).
struct SendOp {
  SendOp* next;
  SendOp* previous;
  union {  // stays until UCX has sent it
    DataHeader data;
    BriefMessage brief;  // begins with `data`
    RequestHeader request;
    GrantHeader grant;
    ChunkHeader chunk;
    FenceHeader fence;
  } header;
  Worker* worker;
  UcxSender* owner;
  Request* user;       // null once its end has been told
  SendOp* parent;      // of a chunk
  Endpoint* endpoint;  // null: nobody counts
  SendOp* later;       // in Worker's queue or in OutStream's
  bool queued;
  bool streaming;  // in OutStream's
  bool launched;
  bool in_ucx;           // UCX will call back
  const uint8_t* bytes;  // null: they are in the header
  size_t size;
  // Of a long message:
  size_t offset;  // bytes given to UCX
  uint32_t send_id, receive_id;
  int chunks;  // in UCX's hands
};

struct ReceiveOp;

// One buffer of a receive.
struct Slot {
  uint64_t tag;
  Slot* next;
  ReceiveOp* op;
  uint8_t* data;
  size_t capacity;
  size_t expected, got;  // of a long message that arrives in chunks
  uint32_t receive_id;   // the same; 0 otherwise
  uint32_t cookie;
  int index;
  bool getting;  // UCX is writing to it
};

struct ReceiveOp {
  ReceiveOp* next;
  ReceiveOp* previous;
  UcxReceiver* owner;
  Request* user;
  int remaining;  // slots to fill, + 1 while being posted
  int count;
  // The first message that did not fit; size 0: none. Capacities below sizes, so size is never 0.
  size_t misfit_size, misfit_capacity;
  bitrail_status_t status;  // of UCX's rendezvous
  Slot slots[kMaxGroupedReceives];
};

// A message that nobody waits for yet.
struct Arrival {
  enum class Kind : uint8_t {
    copied,      // in `small`
    allocated,   // in malloc'ed `data`
    eager,       // in UCX's `data`
    rendezvous,  // `data` is UCX's descriptor; the message is still at the sender
    request      // of our own protocol: still at the sender, who waits for a grant
  };
  uint64_t tag;
  Arrival* next;
  void* data;
  size_t bytes;
  uint64_t order;
  uint32_t cookie;
  uint32_t send_id;
  Kind kind;
  uint8_t small[256];
};

}  // namespace bitrail::transport::ucx
