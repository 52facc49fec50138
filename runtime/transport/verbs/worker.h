// The heart of the transport: the ports that one context uses, their completion queues, what hangs
// on them, and how it ends.
//
// Shared by the Context and all that it made, so that they may go in any order; once the Context is
// gone (closed()), the rest only reports BITRAIL_ERR_BROKEN.
#pragma once

#include <sched.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/device.h"
#include "runtime/transport/verbs/events.h"
#include "runtime/transport/verbs/operations.h"
#include "runtime/transport/verbs/queue_pair.h"

namespace bitrail::transport::verbs {

class Link;
class VerbsListener;

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
  bool closed() const { return closed_; }
  // Status of a context that must not be used any more, OK otherwise.
  const Status& broken() const { return broken_; }
  // Before a link ends: what it has accepted goes out as far as the peer takes it, then the
  // goodbye.
  void close_link(Link* link);

  // Reads attributes and GID of a port again if they changed. Fails for one that is down or gone.
  Status make_usable(size_t port);
  // A completion queue of this port with room for so many more completions.
  Status promise_completions(size_t port, int count, CompletionQueue** queue);

  // Completes a caller's request: now, or at the next progress() while closing something. `owner`
  // is the link it was given to.
  void complete(const Link* owner, Request* request, bitrail_status_t status,
                const std::string& text);
  void complete(const Link* owner, Request* request);  // well
  // Tells at once what was held back of this owner's, which is about to go. Null: everybody's.
  void deliver_held(const Link* owner);

  const Options& options() const { return options_; }
  const IbOptions& ib_options() const { return options_.ib; }
  const std::vector<std::shared_ptr<Port>>& ports() const { return ports_; }
  SidePoller* poller() { return &poller_; }

  // Numbers from ports().size() on stand for combinations.
  Status combine(const std::vector<int>& parts, int* device);
  bool has_device(int device) const {
    return device >= 0 && static_cast<size_t>(device) < ports_.size() + combinations_.size();
  }
  // The ports that a connection of this device may use, the first first: all, beginning with it,
  // or what was combined.
  std::vector<size_t> ports_of(int device) const;

  Pool<SendOp> send_ops;
  Pool<ReceiveOp> receive_ops;
  Pool<Target> targets;
  Pool<Arrival> arrivals;
  Pool<EagerCopy> copies;
  IdTable<QueuePair> pairs;
  std::vector<Link*> links;
  std::vector<VerbsListener*> listeners;
  std::vector<Link*> failing;  // to be ended by progress()
  uint64_t moved = 0;          // counts arrivals and completions

 private:
  struct Held {
    const Link* owner;
    Request* request;
    bitrail_status_t status;
    std::string text;
  };
  // What this context has at a port.
  struct Station {
    ibv_comp_channel* channel = nullptr;
    std::vector<std::unique_ptr<CompletionQueue>> queues;
    bool lost = false;  // its connections were ended since it was usable last
    uint32_t fatal_seen = 0;
  };

  Worker() = default;
  Status open_stations();
  Status open_events();
  int poll_queues();
  int poll_queue(CompletionQueue* queue);
  void check_ports();
  void end_failing();
  int service_side_channel();
  void keep_alive();
  int drain_events();
  template <typename Done>
  bool drain(Done done);

  Options options_;
  std::vector<std::shared_ptr<Port>> ports_;
  std::vector<std::vector<size_t>> combinations_;
  std::vector<Station> stations_;
  std::unique_ptr<EventWatch> watch_;
  int event_fd_ = -1, wake_fd_ = -1;
  SidePoller poller_;
  std::vector<Held> held_;
  int holding_ = 0;
  bool closed_ = false;
  Status broken_;
  bool told_ = false;  // everybody knows that it is broken
  int64_t closing_budget_ns_ = 1'000'000'000;
  uint32_t ticks_ = 0, idle_rounds_ = 0;
};

}  // namespace bitrail::transport::verbs
