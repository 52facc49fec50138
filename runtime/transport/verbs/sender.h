// The sending end of a connection.
#pragma once

#include <memory>

#include "runtime/transport/verbs/link.h"

namespace bitrail::transport::verbs {

// The ring towards the receiver: what eager messages there may be on the way.
constexpr uint32_t kMessageRingUnits = 2048;
// The ring towards the sender holds entries of one unit.
constexpr uint32_t kClearRingUnits = 128;
// Buffers that the receiver offers before it knows of a message, and those it grants to messages:
// so many at a time. Bounds what arrives at one queue pair.
constexpr uint32_t kMaxClears = 64, kMaxGrants = 64;

class VerbsSender : public Sender, public Link {
 public:
  VerbsSender(std::shared_ptr<Worker> worker, const std::string& name);
  ~VerbsSender() override;

  Status isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie, Memory* memory,
               Request* request, bool* accepted) override;
  std::string peer_address() const override { return name_; }
  size_t outstanding() const override { return ops_.size; }
  bool has_requests() const override { return ops_.size > 0; }

 private:
  Shape shape() const override;
  void on_entry(const Entry& entry) override;
  void on_acknowledged(Note* note) override;
  void on_data(QueuePair* pair, uint32_t receive_id) override;
  void on_part_sent(uint32_t send_id) override;
  void on_end(const Status& why) override;
  void on_connected() override;
  void pump() override;

  void clear(const Entry& entry);
  void grant(const Entry& entry);
  bool launch(SendOp* op);
  bool launch_eager(SendOp* op, Target* target);
  bool launch_long(SendOp* op, Target* target);
  void aim(SendOp* op, const Target& target);
  bool transmit(SendOp* op);
  uint32_t plan(size_t bytes, size_t* parts);
  void write_part(SendOp* op, QueuePair* pair, size_t offset, size_t bytes);
  int post_data(QueuePair* pair, SendOp* op, size_t offset, size_t bytes, bool last);
  void retire(SendOp* op);
  void finish(SendOp* op, bitrail_status_t status, const std::string& text);
  void finish(SendOp* op);  // well

  Chain<SendOp> ops_;                     // accepted, not complete
  Fifo<SendOp, &SendOp::later> waiting_;  // to be announced or sent eagerly, in posting order
  Fifo<SendOp, &SendOp::later> sending_;  // have a buffer at the receiver
  IdTable<SendOp> long_sends_;
  TagQueue<Note> unmatched_;  // messages whose receive is not known and that may cross a clear
  TagQueue<Target> targets_;  // clears that no message has met yet
};

}  // namespace bitrail::transport::verbs
