// The heart of the transport: one UCP context and worker, what hangs on it, and how it ends.
//
// Shared by the Context and all that it made, so that they may go in any order; once the Context is
// gone (closed()), the rest only reports BITRAIL_ERR_BROKEN.
//
// Messages travel as UCP active messages with our own matching. Long ones (above the eager limit)
// go one of two ways, chosen by the sender:
// - UCX's rendezvous by get, where the receiver can read the sender's memory (CMA): one copy, made
//   by the receiver inside progress(), so it ends soon after the receiver wants it to end;
// - else request, grant, chunks (message.h): the receiver copies each chunk in its callback and
//   stops by forgetting the receive's id. Between hosts that have nothing but TCP the chunks go
//   through a socket of their own (stream.h), else as active messages. UCX's rendezvous over TCP or
//   shared-memory fragments is not used because UCX 1.13 cannot cancel it, and because it has no
//   limit on what is in flight.
#pragma once

#include <sched.h>
#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/tables.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx/operations.h"

namespace bitrail::transport::ucx {

struct Endpoint;
class UcxListener;

class Worker {
 public:
  ~Worker();
  static Status open(const Options& options, std::shared_ptr<Worker>* worker);

  int progress();
  Status arm(bool* idle);
  int64_t next_timer_ns() const;
  int event_fd() const { return event_fd_; }

  // Sends what was accepted to peers that take it, ends all receives, completes every request.
  void close();
  bool closed() const { return ucp_ == nullptr; }
  // Status of a context that must not be used any more, OK otherwise.
  const Status& broken() const { return broken_; }
  // Progresses until `done` or until nothing has moved for what is left of the closing budget.
  template <typename Done>
  bool drain(Done done);
  // Stops progressing for good, for when UCX still holds memory that has to be given back.
  void poison(const std::string& why);

  // The endpoint to the worker at this UCX address, made once. `local`: same host.
  Status endpoint(const std::vector<uint8_t>& address, bool local, const std::string& name,
                  Endpoint** endpoint);

  // Send a header without data; best effort (the endpoint's failure is told elsewhere). reply() is
  // for endpoints that UCX hands to a callback.
  void send_control(Endpoint* endpoint, MessageId id, const void* header, size_t bytes);
  void reply(ucp_ep_h ep, MessageId id, const void* header, size_t bytes);
  // Completes a caller's request: now, or at the next progress() while closing something.
  // `owner` is the Sender or Receiver it was given to.
  void complete(const void* owner, Request* request, bitrail_status_t status,
                const std::string& text);
  void complete(const void* owner, Request* request);  // well
  // Tells at once what was held back of this owner's, which is about to go. Null: everybody's.
  void deliver_held(const void* owner);

  // One round of UCX, and then what had to wait for its end.
  unsigned progress_ucx();
  // UCX 1.13 lets a message sent from within one of its callbacks overtake those that still wait
  // for room. Where this is true, launch() or pump() is called when the round has ended.
  bool must_wait(const Endpoint& endpoint) const;
  void enqueue(SendOp* op);
  void dequeue(SendOp* op);

  ucp_worker_h ucp() const { return ucp_; }
  const std::vector<uint8_t>& address() const { return address_; }
  const Options& options() const { return options_; }
  SidePoller* poller() { return &poller_; }
  bool has_cma() const { return has_cma_; }
  // Has UCX nothing better than TCP to a process in this host (`local`) or in another?
  bool only_tcp(bool local) const;
  const std::string& transports() const { return transports_; }
  ucp_context_h ucp_context() const { return context_; }
  uint64_t nonce() const { return nonce_; }
  const uint64_t* probe() const { return &nonce_; }

  Pool<SendOp> send_ops;
  Pool<ReceiveOp> receive_ops;
  Pool<Arrival> arrivals;
  IdTable<UcxReceiver> connections;
  IdTable<SendOp> long_sends;  // waiting for a grant or sending chunks
  IdTable<Slot> chunked;       // receiving chunks
  std::vector<UcxSender*> senders;
  std::vector<UcxReceiver*> receivers;
  std::vector<UcxListener*> listeners;
  std::vector<Endpoint*> failed;  // to be closed by progress()
  int streams_waiting = 0;        // OutStreams that wait for room, messages that an InStream brings
  uint64_t moved = 0;             // counts arrivals and completions

 private:
  struct Held {
    const void* owner;
    Request* request;
    bitrail_status_t status;
    std::string text;
  };

  Worker() = default;
  void send_header(ucp_ep_h ep, Endpoint* endpoint, MessageId id, const void* header, size_t bytes);
  Status open_worker();
  Status set_handlers();
  void close_failed();
  int service_side_channel();
  void flush_endpoints();
  void settle_endpoints();
  void end_all(bitrail_status_t status, const std::string& text);

  Options options_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h ucp_ = nullptr;
  int event_fd_ = -1;
  SidePoller poller_;
  std::vector<uint8_t> address_;
  bool has_cma_ = false;
  bool holds_library_ = false;
  std::string transports_;
  uint64_t nonce_ = 0;  // also what peers read to try CMA
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  int64_t endpoint_made_ns_ = 0;  // when the last one to another host was made; 0: none
  std::vector<Held> held_;
  int holding_ = 0;
  bool in_round_ = false;
  SendOp* queue_first_ = nullptr;
  SendOp* queue_last_ = nullptr;
  Status broken_;
  bool told_ = false;  // everybody knows that it is broken
  int64_t closing_budget_ns_ = 1'000'000'000;
  uint64_t fences_sent_ = 0, fences_answered_ = 0;

  friend struct Handlers;
  uint32_t ticks_ = 0;
};

template <typename Done>
bool Worker::drain(Done done) {
  holding_++;
  int64_t since = now_ns();
  uint64_t seen = moved;
  bool finished = done();
  while (!finished && broken_.ok() && ucp_ != nullptr) {
    for (int i = 0; i < 64; i++) progress_ucx();
    finished = done();
    if (finished) break;
    const int64_t now = now_ns();
    if (seen != moved) {
      seen = moved;
      since = now;
    } else if (now - since > closing_budget_ns_) {
      break;
    }
    sched_yield();
  }
  if (!finished) closing_budget_ns_ -= now_ns() - since;
  holding_--;
  return finished;
}

}  // namespace bitrail::transport::ucx
