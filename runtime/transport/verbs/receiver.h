// The receiving end of a connection: matches messages with receives by tag.
//
// Both ends match, and must agree. A receive above the eager limit is offered to the sender by a
// `clear`; a message for which the sender knows no `clear` comes through the ring. Such a message
// meets the oldest receive of its tag among those whose `clear` the sender had not seen when it
// wrote it (`consumed` tells); the sender, when it then sees that `clear`, knows by the same rule
// that it is taken. A `clear` is not written while an older receive of its tag has none.
#pragma once

#include <memory>

#include "runtime/transport/verbs/link.h"

namespace bitrail::transport::verbs {

class VerbsReceiver : public Receiver, public Link {
 public:
  VerbsReceiver(std::shared_ptr<Worker> worker, const std::string& name);
  ~VerbsReceiver() override;

  Status irecv(int count, const Buffer* buffers, Request* request, bool* accepted) override;
  Status flush(int count, const Buffer* buffers, Request* request) override;
  std::vector<Unexpected> unexpected() const override;
  std::string peer_address() const override { return name_; }
  size_t outstanding() const override { return 0; }
  bool has_requests() const override { return ops_.size > 0; }

 private:
  Shape shape() const override;
  void on_entry(const Entry& entry) override;
  void on_acknowledged(Note* note) override;
  void on_data(QueuePair* pair, uint32_t receive_id) override;
  void on_part_sent(uint32_t send_id) override;
  void on_end(const Status& why) override;
  void pump() override;

  Status prepare(int count, const Buffer* buffers, ReceiveOp* op);
  void post(Slot* slot);
  void eager(const Entry& entry);
  void announced(const Entry& entry);
  void record(const Entry& entry);
  void dropped(const Entry& entry);
  void keep(const Entry& entry);
  void deliver(Slot* slot, Arrival* arrival);
  void copy_in(Slot* slot, uint32_t cookie, const uint8_t* data, size_t bytes);
  bool misfits(Slot* slot, uint32_t cookie, size_t bytes);
  void grant(Slot* slot, uint32_t send_id);
  void refuse(uint32_t send_id);
  void check_complete(Slot* slot);
  bool may_clear(const Slot& slot) const;
  void tell_of(Slot* slot, EntryKind kind);
  Slot* take_posted(uint64_t tag);
  void fill(Slot* slot, size_t bytes);
  void free_slot(Slot* slot);
  void finish(ReceiveOp* op);
  void give(Arrival* arrival);

  using Ids = IdTable<Slot, kIdBits - 20>;
  Ids ids_;                  // of receives above the eager limit
  TagQueue<Slot> posted_;    // may still meet a message of the ring
  size_t small_posted_ = 0;  // of those, within the eager limit
  Fifo<Slot, &Slot::after> clears_, grants_;
  Fifo<Arrival, &Arrival::next> refusals_;
  size_t clears_out_ = 0, grants_out_ = 0;
  TagQueue<Arrival> arrivals_;
  Chain<ReceiveOp> ops_;
  uint64_t order_ = 0;
};

}  // namespace bitrail::transport::verbs
