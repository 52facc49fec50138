#include "runtime/transport/verbs/sender.h"

#include <arpa/inet.h>

#include <algorithm>

#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/worker.h"

namespace bitrail::transport::verbs {
namespace {

// Requests of one connection in flight; beyond, isend says "not now".
constexpr size_t kMaxSends = 1024;
constexpr size_t kStripeAlignment = 128;
constexpr uint32_t kWords = 16;  // credits and words that may arrive beside entries

// One work request carries so much at most; devices say 1 or 2 GiB.
size_t largest_piece(const QueuePair& pair) {
  const size_t limit = pair.port->attributes.max_msg_sz;
  return std::clamp<size_t>(limit, 1 << 20, 1 << 30) & ~(kStripeAlignment - 1);
}

bool apart(const QueuePair& pair, const IbOptions& options, size_t bytes) {
  return pair.port->adaptive_routing && bytes > static_cast<size_t>(options.adaptive_threshold);
}

uint32_t pieces(const QueuePair& pair, const IbOptions& options, size_t bytes) {
  const size_t piece = largest_piece(pair);
  return static_cast<uint32_t>((bytes + piece - 1) / piece) +
         (apart(pair, options, bytes) ? 1U : 0U);
}

}  // namespace

VerbsSender::VerbsSender(std::shared_ptr<Worker> worker, const std::string& name)
    : Link(std::move(worker), name) {}

VerbsSender::~VerbsSender() {
  // The buffers go back to the caller; what was accepted reaches a peer that takes it.
  if (!worker_->closed()) worker_->close_link(this);
  end(failure(BITRAIL_ERR_ABORTED, "the connection to {} was closed", name_));
  worker_->deliver_held(static_cast<Link*>(this));
}

Link::Shape VerbsSender::shape() const {
  return {.in_units = kClearRingUnits,
          .out_units = kMessageRingUnits,
          .eager_bytes = 0,
          .first = {.sends = kMaxEntries + 128, .receives = kMaxEntries + kWords},
          .others = {.sends = 128, .receives = 0}};
}

void VerbsSender::on_connected() {
  open_ = true;
  send_word(Signal::hello, 0, false);
}

Status VerbsSender::isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie,
                          Memory* memory, Request* request, bool* accepted) {
  *accepted = false;
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  if (!worker_->broken().ok()) return worker_->broken();
  if (!failure_.ok()) return failure_;
  if (!failing().ok()) return failing();
  if (bytes > kMaxMessageBytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "isend of {} bytes to {}, allowed are {}", bytes,
                   name_, kMaxMessageBytes);
  }
  if (ops_.size >= kMaxSends) return {};

  SendOp* op = worker_->send_ops.take();
  *op = {};
  if (bytes > peer_eager_bytes_) {
    Status status = take_keys(data, bytes, memory, &op->keys);
    if (status.ok()) op->send_id = long_sends_.insert(op);
    if (!status.ok()) {
      worker_->send_ops.give(op);
      return status;
    }
  }
  op->user = request;
  op->bytes = static_cast<const uint8_t*>(data);
  op->size = bytes;
  op->tag = tag;
  op->cookie = cookie;
  ops_.push(op);
  request->done = false;
  request->status = BITRAIL_OK;
  *accepted = true;
  if (waiting_.first != nullptr || !launch(op)) waiting_.push(op);
  return {};
}

void VerbsSender::pump() {
  while (sending_.first != nullptr && transmit(sending_.first)) {
  }
  while (SendOp* op = waiting_.first) {
    // Launching may complete it, and its owner may send the next from there.
    waiting_.pop();
    if (launch(op)) continue;
    op->later = waiting_.first;
    waiting_.first = op;
    if (waiting_.last == nullptr) waiting_.last = op;
    break;
  }
}

// False when there is no room; nothing has happened then.
bool VerbsSender::launch(SendOp* op) {
  const bool eager = op->size <= peer_eager_bytes_;
  if (!room(eager ? kEagerHeaderBytes + op->size : kEntryHeaderBytes)) return false;
  Target* target = targets_.size() > 0 ? targets_.pop(op->tag) : nullptr;
  return eager ? launch_eager(op, target) : launch_long(op, target);
}

bool VerbsSender::launch_eager(SendOp* op, Target* target) {
  Entry entry;
  entry.kind = EntryKind::eager;
  entry.id = target != nullptr ? target->receive_id : 0;
  entry.tag = op->tag;
  entry.bytes = op->size;
  entry.cookie = op->cookie;
  entry.payload = op->bytes;
  Note* note = write(&entry);
  if (target != nullptr) {
    worker_->targets.give(target);
  } else {
    note->tag = op->tag;
    note->unmatched = true;
    unmatched_.push(note);
  }
  finish(op);  // it was copied
  return true;
}

bool VerbsSender::launch_long(SendOp* op, Target* target) {
  if (target != nullptr) {
    const Target aimed = *target;
    worker_->targets.give(target);
    aim(op, aimed);
    return true;
  }
  Entry entry;
  entry.kind = EntryKind::announce;
  entry.tag = op->tag;
  entry.bytes = op->size;
  entry.cookie = op->cookie;
  entry.send_id = op->send_id;
  op->announced = true;
  Note* note = write(&entry);
  note->tag = op->tag;
  note->unmatched = true;
  note->op = op;
  unmatched_.push(note);
  return true;
}

// The message has met this receive.
void VerbsSender::aim(SendOp* op, const Target& target) {
  op->targeted = true;
  op->target = target;
  sending_.push(op);
  while (sending_.first != nullptr && transmit(sending_.first)) {
  }
}

// Which queue pairs carry a message of so many bytes, and how much each. Weighted by speed.
uint32_t VerbsSender::plan(size_t bytes, size_t* parts) {
  const size_t count = pairs_.size();
  std::fill(parts, parts + count, 0);
  double total = 0;
  size_t best = 0;
  for (size_t i = 0; i < count; i++) {
    const QueuePair& pair = *pairs_[i];
    total += pair.weight;
    const QueuePair& other = *pairs_[best];
    if (pair.clock + static_cast<double>(bytes) / pair.weight <
        other.clock + static_cast<double>(bytes) / other.weight) {
      best = i;
    }
  }
  if (count == 1 || !worker_->ib_options().split_data || bytes <= kStripeAlignment) {
    parts[best] = bytes;
    return 1U << best;
  }
  uint32_t mask = 0;
  size_t left = bytes;
  for (size_t i = 0; i < count && left > 0; i++) {
    const double share = static_cast<double>(bytes) * pairs_[i]->weight / total;
    const size_t aligned =
        (static_cast<size_t>(share) + kStripeAlignment - 1) & ~(kStripeAlignment - 1);
    parts[i] = i + 1 == count ? left : std::min(left, std::max(aligned, kStripeAlignment));
    left -= parts[i];
    mask |= 1U << i;
  }
  return mask;
}

// Sends record and data of the first in sending_. False when there is no room for all of it.
bool VerbsSender::transmit(SendOp* op) {
  const IbOptions& options = worker_->ib_options();
  if (!room(kEntryHeaderBytes)) return false;
  const bool fits = op->size <= op->target.bytes;
  // One that was announced is known at the receiver, which then sees for itself.
  if (!fits && op->announced) {
    sending_.pop();
    finish(op);
    return true;
  }
  Entry entry;
  entry.id = op->target.receive_id;
  entry.tag = op->tag;
  entry.bytes = op->size;
  entry.cookie = op->cookie;
  if (!fits) {
    entry.kind = EntryKind::dropped;
    sending_.pop();
    write(&entry);
    finish(op);
    return true;
  }
  size_t parts[kMaxQueuePairs];
  entry.kind = EntryKind::record;
  entry.mask = plan(op->size, parts);
  for (size_t i = 0; i < pairs_.size(); i++) {
    const uint32_t needed = parts[i] == 0 ? 0 : pieces(*pairs_[i], options, parts[i]);
    if (!send_room(*pairs_[i], needed + (i == 0 ? 1U : 0U))) return false;
  }
  sending_.pop();
  write(&entry);
  size_t offset = 0;
  for (size_t i = 0; i < pairs_.size(); i++) {
    if (parts[i] == 0) continue;
    op->parts++;
    write_part(op, pairs_[i].get(), offset, parts[i]);
    offset += parts[i];
  }
  return true;
}

void VerbsSender::write_part(SendOp* op, QueuePair* pair, size_t offset, size_t bytes) {
  pair->clock += static_cast<double>(bytes) / pair->weight;
  const bool separate = apart(*pair, worker_->ib_options(), bytes);
  const size_t piece = largest_piece(*pair);
  const size_t end = offset + bytes;
  int error = 0;
  for (; offset < end && error == 0; offset += piece) {
    const size_t now = std::min(piece, end - offset);
    error = post_data(pair, op, offset, now, offset + now == end && !separate);
  }
  if (error == 0 && separate) error = post_data(pair, op, end, 0, true);
  if (error == 0) return;
  fail(failure(BITRAIL_ERR_SYSTEM, "send to {} over {}: {}", name_, pair->port->name,
               errno_text("post_send", error)));
}

// One work request; the last of a part carries the immediate. 0 bytes: only the immediate.
int VerbsSender::post_data(QueuePair* pair, SendOp* op, size_t offset, size_t bytes, bool last) {
  const auto rail = static_cast<size_t>(pair->rail);
  ibv_sge piece{};
  piece.addr = reinterpret_cast<uint64_t>(op->bytes + offset);
  piece.length = static_cast<uint32_t>(bytes);
  piece.lkey = op->keys.local[rail];
  ibv_send_wr work{};
  work.sg_list = bytes > 0 ? &piece : nullptr;
  work.num_sge = bytes > 0 ? 1 : 0;
  work.opcode = last ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  work.imm_data = htonl(encode_immediate({Signal::data, op->target.receive_id}));
  work.wr.rdma.remote_addr = op->target.address + (bytes > 0 ? offset : 0);
  work.wr.rdma.rkey = op->target.rkeys[rail];
  return post_send(pair, &work, last, last ? op->send_id : 0, ring_written());
}

void VerbsSender::on_part_sent(uint32_t send_id) {
  SendOp* op = long_sends_.find(send_id);
  if (op == nullptr) return;
  worker_->moved++;
  if (--op->parts == 0) finish(op);
}

void VerbsSender::on_entry(const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::clear:
      return clear(entry);
    case EntryKind::grant:
      return grant(entry);
    case EntryKind::refuse: {
      SendOp* op = long_sends_.find(entry.send_id);
      if (op == nullptr || !op->announced || op->targeted) return nonsense("a refusal");
      return finish(op);
    }
    default:
      return nonsense("an entry of the wrong direction");
  }
}

namespace {

void read_target(const Entry& entry, Target* target) {
  *target = {};
  target->tag = entry.tag;
  target->address = entry.address;
  target->bytes = entry.bytes;
  target->receive_id = entry.id;
  std::copy(std::begin(entry.rkeys), std::end(entry.rkeys), target->rkeys);
}

}  // namespace

// Acknowledged messages are no longer in unmatched_: the receiver had seen them and still waits.
// One that is left was on its way when the receiver wrote this: there they meet, and so they do
// here.
void VerbsSender::clear(const Entry& entry) {
  Target target{};
  read_target(entry, &target);
  Note* note = unmatched_.size() > 0 ? unmatched_.pop(entry.tag) : nullptr;
  if (note == nullptr) {
    if (targets_.size() >= kMaxClears) return nonsense("too many clears");
    Target* kept = worker_->targets.take();
    *kept = target;
    targets_.push(kept);
    return;
  }
  note->unmatched = false;
  if (note->op != nullptr) aim(note->op, target);
}

void VerbsSender::grant(const Entry& entry) {
  SendOp* op = long_sends_.find(entry.send_id);
  if (op == nullptr || !op->announced || op->targeted || entry.bytes < op->size) {
    return nonsense("a grant");
  }
  Target target{};
  read_target(entry, &target);
  aim(op, target);
}

void VerbsSender::on_acknowledged(Note* note) {
  // The oldest of its tag: they are acknowledged in order.
  if (note->unmatched) unmatched_.pop(note->tag);
  note->unmatched = false;
}

void VerbsSender::on_data(QueuePair* /*pair*/, uint32_t /*receive_id*/) { nonsense("data"); }

void VerbsSender::retire(SendOp* op) {
  if (op->send_id != 0) long_sends_.erase(op->send_id);
  release_keys(&op->keys);
  ops_.remove(op);
  worker_->send_ops.give(op);
  worker_->moved++;
}

void VerbsSender::finish(SendOp* op) {
  Request* user = op->user;
  retire(op);
  worker_->complete(static_cast<Link*>(this), user);
}

void VerbsSender::finish(SendOp* op, bitrail_status_t status, const std::string& text) {
  Request* user = op->user;
  retire(op);
  worker_->complete(static_cast<Link*>(this), user, status, text);
}

void VerbsSender::on_end(const Status& why) {
  waiting_ = {};
  sending_ = {};
  while (unmatched_.pop_any() != nullptr) {
  }
  while (Target* target = targets_.pop_any()) worker_->targets.give(target);
  while (ops_.first != nullptr) finish(ops_.first, why.code(), why.text());
}

}  // namespace bitrail::transport::verbs
