#include "runtime/transport/verbs/receiver.h"

#include <algorithm>
#include <cstring>

#include "runtime/transport/verbs/sender.h"
#include "runtime/transport/verbs/worker.h"

namespace bitrail::transport::verbs {
namespace {

constexpr size_t kMaxReceives = 1024;  // receives of one connection
constexpr uint32_t kWords = 16;        // credits and words that may arrive beside entries

}  // namespace

VerbsReceiver::VerbsReceiver(std::shared_ptr<Worker> worker, const std::string& name)
    : Link(std::move(worker), name) {}

VerbsReceiver::~VerbsReceiver() {
  if (!worker_->closed()) worker_->close_link(this);
  end(failure(BITRAIL_ERR_ABORTED, "the connection from {} was closed", name_));
  while (Arrival* arrival = arrivals_.pop_any()) give(arrival);
  worker_->deliver_held(static_cast<Link*>(this));
}

Link::Shape VerbsReceiver::shape() const {
  return {
      .in_units = kMessageRingUnits,
      .out_units = kClearRingUnits,
      .eager_bytes = kEagerBytes,
      .first = {.sends = kMaxEntries, .receives = kMaxEntries + kMaxClears + kMaxGrants + kWords},
      .others = {.sends = 0, .receives = kMaxClears + kMaxGrants}};
}

// Registers what needs it. Nothing is kept when it fails.
Status VerbsReceiver::prepare(int count, const Buffer* buffers, ReceiveOp* op) {
  for (int i = 0; i < count; i++) {
    Slot* slot = &op->slots[i];
    *slot = {};
    slot->tag = buffers[i].tag;
    slot->op = op;
    slot->data = static_cast<uint8_t*>(buffers[i].data);
    slot->capacity = buffers[i].bytes;
    slot->index = i;
    if (slot->capacity <= kEagerBytes || ended()) continue;
    Status status = take_keys(slot->data, slot->capacity, buffers[i].memory, &slot->keys);
    if (!status.ok()) {
      for (int j = 0; j < i; j++) free_slot(&op->slots[j]);
      return status;
    }
    slot->id = ids_.insert(slot);
  }
  return {};
}

Status VerbsReceiver::irecv(int count, const Buffer* buffers, Request* request, bool* accepted) {
  *accepted = false;
  if (count < 1 || count > kMaxGroupedReceives) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "irecv of {} buffers, allowed are 1 to {}", count,
                   kMaxGroupedReceives);
  }
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  if (!worker_->broken().ok()) return worker_->broken();
  if (ops_.size >= kMaxReceives) return {};
  // What arrived before the connection broke can still be received.
  if (!failure_.ok() && arrivals_.size() == 0) return failure_;

  ReceiveOp* op = worker_->receive_ops.take();
  Status prepared = prepare(count, buffers, op);
  if (!prepared.ok()) {
    worker_->receive_ops.give(op);
    return prepared;
  }
  op->user = request;
  op->count = count;
  op->remaining = count + 1;
  op->misfit_size = op->misfit_capacity = 0;
  ops_.push(op);
  request->done = false;
  request->status = BITRAIL_OK;
  *accepted = true;
  for (int i = 0; i < count; i++) post(&op->slots[i]);
  pump();
  if (--op->remaining == 0) {
    finish(op);
  } else if (!failure_.ok()) {
    on_end(failure_);
  }
  return {};
}

void VerbsReceiver::post(Slot* slot) {
  Arrival* arrival = arrivals_.size() > 0 ? arrivals_.pop(slot->tag) : nullptr;
  if (arrival != nullptr) return deliver(slot, arrival);
  posted_.push(slot);
  slot->listed = true;
  if (slot->id == 0) {
    small_posted_++;
  } else {
    clears_.push(slot);
    slot->queued = true;
  }
}

// Host memory is visible as soon as the receive is complete.
Status VerbsReceiver::flush(int /*count*/, const Buffer* /*buffers*/, Request* request) {
  request->status = BITRAIL_OK;
  request->done = true;
  if (request->on_done != nullptr) request->on_done(request);
  return {};
}

std::vector<Unexpected> VerbsReceiver::unexpected() const {
  std::vector<std::pair<uint64_t, Unexpected>> found;
  arrivals_.each([&found](const Arrival& arrival) {
    found.push_back({arrival.order, {arrival.tag, arrival.cookie, arrival.bytes}});
  });
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Unexpected> messages;
  messages.reserve(found.size());
  for (const auto& entry : found) messages.push_back(entry.second);
  return messages;
}

void VerbsReceiver::pump() {
  while (refusals_.first != nullptr && room(kEntryHeaderBytes)) {
    Arrival* refusal = refusals_.pop();
    Entry entry;
    entry.kind = EntryKind::refuse;
    entry.send_id = refusal->send_id;
    write(&entry);
    worker_->arrivals.give(refusal);
  }
  while (grants_.first != nullptr && grants_out_ < kMaxGrants && room(kEntryHeaderBytes)) {
    Slot* slot = grants_.pop();
    slot->granted = true;
    grants_out_++;
    tell_of(slot, EntryKind::grant);
  }
  while (clears_.first != nullptr && clears_out_ < kMaxClears && room(kEntryHeaderBytes) &&
         may_clear(*clears_.first)) {
    Slot* slot = clears_.pop();
    slot->queued = false;
    slot->cleared = true;
    clears_out_++;
    tell_of(slot, EntryKind::clear);
  }
}

// No older receive of its tag waits without a clear: clears go out in the order of the receives,
// so that can only be one within the eager limit.
bool VerbsReceiver::may_clear(const Slot& slot) const {
  if (small_posted_ == 0) return true;
  return posted_.find(slot.tag, [](const Slot& one) { return !one.cleared; }) == &slot;
}

void VerbsReceiver::tell_of(Slot* slot, EntryKind kind) {
  Entry entry;
  entry.kind = kind;
  entry.id = slot->id;
  entry.tag = slot->tag;
  entry.bytes = slot->capacity;
  entry.address = reinterpret_cast<uint64_t>(slot->data);
  entry.send_id = kind == EntryKind::grant ? slot->send_id : 0;
  for (size_t i = 0; i < kMaxRails; i++) entry.rkeys[i] = slot->keys.remote[i % rail_count()];
  Note* note = write(&entry);
  note->id = kind == EntryKind::clear ? slot->id : 0;
}

// The sender has seen this clear: what it sends from now on for it names it.
void VerbsReceiver::on_acknowledged(Note* note) {
  const Slot* slot = note->id != 0 ? ids_.find(note->id) : nullptr;
  if (slot != nullptr && slot->listed) take_posted(slot->tag);
}

Slot* VerbsReceiver::take_posted(uint64_t tag) {
  Slot* slot = posted_.size() > 0 ? posted_.pop(tag) : nullptr;
  if (slot == nullptr) return nullptr;
  slot->listed = false;
  if (slot->id == 0) small_posted_--;
  if (slot->queued) clears_.remove(slot);
  slot->queued = false;
  return slot;
}

void VerbsReceiver::on_entry(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::eager:
      return eager(entry);
    case EntryKind::announce:
      return announced(entry);
    case EntryKind::record:
      return record(entry);
    case EntryKind::dropped:
      return dropped(entry);
    default:
      return nonsense("an entry of the wrong direction");
  }
}

namespace {

// Is this a receive that the sender may name, and to which nothing has come yet?
bool waits(const Slot* slot) {
  return slot != nullptr && !slot->listed && (slot->cleared || slot->granted) && slot->wanted == 0;
}

}  // namespace

void VerbsReceiver::eager(const Entry& entry) {
  if (entry.bytes > kEagerBytes) return nonsense("an eager message above the limit");
  Slot* slot = nullptr;
  if (entry.id != 0) {
    slot = ids_.find(entry.id);
    if (!waits(slot) || slot->granted || slot->arrived != 0 || slot->tag != entry.tag) {
      return nonsense("a message for a receive that does not wait");
    }
  } else {
    slot = take_posted(entry.tag);
  }
  if (slot == nullptr) return keep(entry);
  if (!misfits(slot, entry.cookie, entry.bytes)) {
    copy_in(slot, entry.cookie, entry.payload, entry.bytes);
  }
}

void VerbsReceiver::announced(const Entry& entry) {
  if (entry.bytes <= kEagerBytes || entry.send_id == 0) return nonsense("an announcement");
  Slot* slot = take_posted(entry.tag);
  if (slot == nullptr) return keep(entry);
  const bool cleared = slot->cleared;
  // With a clear on its way the sender sees for itself that it fits, or does not.
  if (misfits(slot, entry.cookie, entry.bytes)) {
    if (!cleared) refuse(entry.send_id);
  } else if (!cleared) {
    grant(slot, entry.send_id);
  }
}

void VerbsReceiver::record(const Entry& entry) {
  Slot* slot = ids_.find(entry.id);
  const uint64_t all = (uint64_t{1} << pairs_.size()) - 1;
  if (!waits(slot) || slot->tag != entry.tag || entry.mask == 0 || (entry.mask & ~all) != 0 ||
      entry.bytes == 0 || entry.bytes > slot->capacity) {
    return nonsense("the record of a message for a receive that does not wait for it");
  }
  slot->wanted = entry.mask;
  slot->expected = entry.bytes;
  slot->cookie = entry.cookie;
  check_complete(slot);
}

void VerbsReceiver::dropped(const Entry& entry) {
  Slot* slot = ids_.find(entry.id);
  if (!waits(slot) || slot->granted || slot->arrived != 0 ||
      !misfits(slot, entry.cookie, entry.bytes)) {
    nonsense("word of a message that did not fit, but does");
  }
}

void VerbsReceiver::on_data(QueuePair* pair, uint32_t receive_id) {
  Slot* slot = ids_.find(receive_id);
  const uint32_t bit = 1U << pair->index;
  if (slot == nullptr || !(slot->cleared || slot->granted) || (slot->arrived & bit) != 0) {
    return nonsense("data for a receive that does not wait for them");
  }
  slot->arrived |= bit;
  if (slot->wanted != 0) check_complete(slot);
}

void VerbsReceiver::check_complete(Slot* slot) {
  if ((slot->arrived & ~slot->wanted) != 0) return nonsense("data over another queue pair");
  if (slot->arrived == slot->wanted) fill(slot, slot->expected);
}

void VerbsReceiver::on_part_sent(uint32_t /*send_id*/) {}

void VerbsReceiver::keep(const Entry& entry) {
  Arrival* arrival = worker_->arrivals.take();
  arrival->tag = entry.tag;
  arrival->cookie = entry.cookie;
  arrival->bytes = entry.bytes;
  arrival->order = order_++;
  arrival->send_id = entry.kind == EntryKind::announce ? entry.send_id : 0;
  arrival->copy = nullptr;
  if (arrival->send_id == 0 && entry.bytes > 0) {
    uint8_t* to = arrival->small;
    if (entry.bytes > sizeof(arrival->small)) {
      arrival->copy = worker_->copies.take();
      to = arrival->copy->bytes;
    }
    memcpy(to, entry.payload, entry.bytes);
  }
  arrivals_.push(arrival);
}

void VerbsReceiver::deliver(Slot* slot, Arrival* arrival) {
  if (arrival->send_id != 0) {
    if (misfits(slot, arrival->cookie, arrival->bytes)) {
      refuse(arrival->send_id);
    } else {
      grant(slot, arrival->send_id);
    }
  } else if (!misfits(slot, arrival->cookie, arrival->bytes)) {
    const uint8_t* data = arrival->copy != nullptr ? arrival->copy->bytes : arrival->small;
    copy_in(slot, arrival->cookie, data, arrival->bytes);
  }
  give(arrival);
}

void VerbsReceiver::give(Arrival* arrival) {
  if (arrival->copy != nullptr) worker_->copies.give(arrival->copy);
  worker_->arrivals.give(arrival);
}

void VerbsReceiver::grant(Slot* slot, uint32_t send_id) {
  slot->send_id = send_id;
  grants_.push(slot);
}

void VerbsReceiver::refuse(uint32_t send_id) {
  Arrival* refusal = worker_->arrivals.take();
  refusal->copy = nullptr;
  refusal->send_id = send_id;
  refusals_.push(refusal);
}

bool VerbsReceiver::misfits(Slot* slot, uint32_t cookie, size_t bytes) {
  if (bytes <= slot->capacity) return false;
  if (slot->op->misfit_size == 0) {
    slot->op->misfit_size = bytes;
    slot->op->misfit_capacity = slot->capacity;
  }
  slot->cookie = cookie;
  fill(slot, 0);
  return true;
}

void VerbsReceiver::copy_in(Slot* slot, uint32_t cookie, const uint8_t* data, size_t bytes) {
  if (bytes > 0) memcpy(slot->data, data, bytes);
  slot->cookie = cookie;
  fill(slot, bytes);
}

void VerbsReceiver::free_slot(Slot* slot) {
  if (slot->id == 0) return;
  ids_.erase(slot->id);
  slot->id = 0;
  release_keys(&slot->keys);
  if (slot->cleared) clears_out_--;
  if (slot->granted) grants_out_--;
}

void VerbsReceiver::fill(Slot* slot, size_t bytes) {
  free_slot(slot);
  ReceiveOp* op = slot->op;
  op->user->received[slot->index] = bytes;
  op->user->cookie = op->slots[op->count - 1].cookie;
  if (--op->remaining == 0) finish(op);
}

void VerbsReceiver::finish(ReceiveOp* op) {
  Request* user = op->user;
  const size_t size = op->misfit_size, capacity = op->misfit_capacity;
  ops_.remove(op);
  worker_->receive_ops.give(op);
  worker_->moved++;
  if (size > 0) {
    worker_->complete(static_cast<Link*>(this), user, BITRAIL_ERR_MISMATCH,
                      fmt::format("receive from {}: a message of {} bytes for a buffer of {} bytes",
                                  name_, size, capacity));
  } else {
    worker_->complete(static_cast<Link*>(this), user);
  }
}

void VerbsReceiver::on_end(const Status& why) {
  while (posted_.pop_any() != nullptr) {
  }
  small_posted_ = 0;
  clears_ = {};
  grants_ = {};
  while (Arrival* refusal = refusals_.pop()) worker_->arrivals.give(refusal);
  // Those still at the sender stay there; what is here can be received.
  TagQueue<Arrival> here;
  while (Arrival* arrival = arrivals_.pop_any()) {
    if (arrival->send_id != 0) {
      give(arrival);
    } else {
      here.push(arrival);
    }
  }
  arrivals_ = here;
  while (ReceiveOp* op = ops_.first) {
    for (int i = 0; i < op->count; i++) free_slot(&op->slots[i]);
    Request* user = op->user;
    ops_.remove(op);
    worker_->receive_ops.give(op);
    worker_->complete(static_cast<Link*>(this), user, why.code(), why.text());
  }
}

}  // namespace bitrail::transport::verbs
