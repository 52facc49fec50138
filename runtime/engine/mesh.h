// The connections of one rank to its peers, made when a program first needs them.
//
// Each rank listens once per mesh; the handles travel by the bootstrap. A pair needs two one-way
// connections. All calls happen under the engine's lock; nothing blocks.
#pragma once

#include <memory>
#include <vector>

#include "runtime/transport/transport.h"

namespace bitrail::engine {

class Mesh {
 public:
  Mesh(transport::Context* context, int rank, int world_size);

  Status listen(transport::Handle* own);
  void set_handles(std::vector<transport::Handle> handles) { handles_ = std::move(handles); }

  // Starts connecting to `peer` unless that is done or under way. `deadline` bounds it.
  void want(int peer, Deadline deadline);
  // Goes on with what is wanted and takes in what arrives; *events counts what happened.
  Status poll(int* events);
  bool connecting() const { return wanted_ > 0; }

  bool can_send(int peer) const { return links_[static_cast<size_t>(peer)].sender != nullptr; }
  bool can_recv(int peer) const { return links_[static_cast<size_t>(peer)].receiver != nullptr; }
  transport::Sender* sender(int peer) { return links_[static_cast<size_t>(peer)].sender.get(); }
  transport::Receiver* receiver(int peer) {
    return links_[static_cast<size_t>(peer)].receiver.get();
  }
  // Ends all connections: when it returns nothing writes into receive buffers any more.
  void close();

 private:
  struct Link {
    bool wanted = false;
    Deadline deadline;
    std::unique_ptr<transport::Context::Connecting> pending;
    std::unique_ptr<transport::Sender> sender;
    std::unique_ptr<transport::Receiver> receiver;
  };
  Status accept(int* events);

  transport::Context* context_;
  int rank_;
  int wanted_ = 0;
  std::vector<Link> links_;
  std::vector<transport::Handle> handles_;
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace bitrail::engine
