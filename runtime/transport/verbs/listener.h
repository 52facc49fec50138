// Connection set-up of transport verbs over the side channel: the accepting side (VerbsListener)
// and the connecting side (VerbsConnecting). Names and duties as in ucx/listener.h.
//
// The acceptor makes its queue pairs when it has seen the connector's, brings them to where they
// can receive and send, and then answers; it writes nothing to the connector before the connector's
// hello, which comes over the first queue pair: the connector's device would drop it.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/message.h"

namespace bitrail::transport::verbs {

class Worker;
class VerbsReceiver;
class VerbsSender;

class VerbsListener : public Listener, private SideEvent {
 public:
  VerbsListener(std::shared_ptr<Worker> worker, int device);
  ~VerbsListener() override;
  Status open(const sockaddr_storage& address, Handle* handle);

  Status accept(std::unique_ptr<Receiver>* receiver, Peer* peer) override;
  // Moves half-open set-ups; ends those whose time is up.
  void service();
  int64_t next_timer_ns() const;

 private:
  struct Incoming {
    std::unique_ptr<SideSession> session;
    std::unique_ptr<VerbsReceiver> receiver;  // set when the connector's greeting was accepted
    Greeting theirs;
    bool answered = false;
    bool reported = false;
  };

  void ready() override;
  void greet(Incoming* incoming);
  Status welcome(Incoming* incoming, bool* done);

  std::shared_ptr<Worker> worker_;
  int device_;
  SideListener socket_;
  uint64_t nonce_ = 0;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  struct Ready {
    std::unique_ptr<VerbsReceiver> receiver;
    int rank;
  };
  std::deque<Ready> ready_;
};

class VerbsConnecting : public Context::Connecting {
 public:
  explicit VerbsConnecting(std::shared_ptr<Worker> worker);
  ~VerbsConnecting() override;
  Status start(int device, const Handle& handle, const Peer& peer, Deadline deadline);
  // *sender stays null while the peer has not answered.
  Status poll(std::unique_ptr<Sender>* sender);

 private:
  Status read_answer();
  Status with_name(const Status& status) const;

  std::shared_ptr<Worker> worker_;
  std::unique_ptr<SideSession> session_;
  std::unique_ptr<VerbsSender> sender_;
  Greeting theirs_;
  bool answered_ = false;
  Deadline deadline_;
  int rank_ = -1;
};

}  // namespace bitrail::transport::verbs
