// Connection set-up of transport ucx over the side channel: the accepting side (UcxListener) and
// the connecting side (UcxConnecting).
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/transport.h"
#include "runtime/transport/ucx/message.h"

namespace bitrail::transport::ucx {

class Worker;
class UcxReceiver;

class UcxListener : public Listener, private SideEvent {
 public:
  explicit UcxListener(std::shared_ptr<Worker> worker);
  ~UcxListener() override;
  Status open(const sockaddr_storage& address, Handle* handle);

  Status accept(std::unique_ptr<Receiver>* receiver, Peer* peer) override;
  // Moves half-open set-ups; ends those whose time is up.
  void service();
  int64_t next_timer_ns() const;

 private:
  struct Incoming {
    std::unique_ptr<SideSession> session;
    std::unique_ptr<UcxReceiver> receiver;  // set when the connector's greeting was accepted
    bool stream = false;                    // both want it
    bool answered = false;
    bool reported = false;
  };

  void ready() override;
  void greet(Incoming* incoming);
  void accepted(Incoming* incoming);
  Status welcome(Incoming* incoming, Greeting* ours);

  std::shared_ptr<Worker> worker_;
  SideListener socket_;
  uint64_t nonce_ = 0;
  std::vector<std::unique_ptr<Incoming>> incoming_;
  struct Ready {
    std::unique_ptr<UcxReceiver> receiver;
    int rank;
  };
  std::deque<Ready> ready_;
};

class UcxConnecting : public Context::Connecting {
 public:
  explicit UcxConnecting(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}
  Status start(const Handle& handle, const Peer& peer, Deadline deadline);
  // *sender stays null while the peer has not answered.
  Status poll(std::unique_ptr<Sender>* sender);

 private:
  Status finish(std::unique_ptr<Sender>* sender);
  Status with_name(const Status& status) const;

  std::shared_ptr<Worker> worker_;
  std::unique_ptr<SideSession> session_;
  int rank_ = -1;
};

}  // namespace bitrail::transport::ucx
