// The sending end of an emulated connection: messages wait here for their turn on the link.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "runtime/transport/emulated/cards.h"
#include "runtime/transport/transport.h"

namespace bitrail::transport::emulated {

class EmulatedSender;

// What the senders of one context share.
struct Link {
  std::unique_ptr<Cards> cards;
  Card* mine = nullptr;
  Shape shape;
  int ranks_per_node = 1, nodes = 1, node = 0;
  std::vector<EmulatedSender*> senders;
  size_t turn = 0;     // round robin over senders
  size_t waiting = 0;  // messages in all senders
  bool closed = false;

  // Reserves what the card has time for and hands over what has arrived; how many messages.
  int serve();
  int64_t next_timer_ns() const;
};

class EmulatedSender : public Sender {
 public:
  EmulatedSender(std::shared_ptr<Link> link, Card* peers, std::unique_ptr<Sender> inner);
  ~EmulatedSender() override;

  Status isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie, Memory* memory,
               Request* request, bool* accepted) override;
  std::string peer_address() const override { return inner_->peer_address(); }

  // A quantum of the oldest message that still needs the link. False: nothing to do or card busy.
  bool reserve_one(int64_t now, int64_t* busy_until);
  bool wants_link() const { return on_link_ < messages_.size(); }
  int hand_over(int64_t now);
  // Everything at once, before closing: what was accepted is not lost, and the transport below
  // flushes it.
  void hand_over_all();
  int64_t next_delivery_ns() const;

 private:
  struct Message {
    const void* data;
    size_t bytes;
    uint64_t tag;
    Memory* memory;
    Request* request;
    int64_t queued_ns;
    int64_t delivered_ns;  // of what is reserved
    size_t reserved;       // bytes
    uint32_t cookie;
    bool started;
  };

  bool give(const Message& message);

  std::shared_ptr<Link> link_;
  Card* peers_;
  std::unique_ptr<Sender> inner_;
  std::deque<Message> messages_;  // oldest first; the first `on_link_` are fully reserved
  size_t on_link_ = 0;
};

}  // namespace bitrail::transport::emulated
