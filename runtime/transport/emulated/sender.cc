#include "runtime/transport/emulated/sender.h"

#include <algorithm>
#include <utility>

#include "runtime/common/clock.h"

namespace bitrail::transport::emulated {
namespace {

constexpr size_t kMaxWaiting = 1024;  // messages of one sender

}  // namespace

EmulatedSender::EmulatedSender(std::shared_ptr<Link> link, Card* peers,
                               std::unique_ptr<Sender> inner)
    : link_(std::move(link)), peers_(peers), inner_(std::move(inner)) {
  link_->senders.push_back(this);
}

EmulatedSender::~EmulatedSender() {
  hand_over_all();
  std::erase(link_->senders, this);
}

void EmulatedSender::hand_over_all() {
  link_->waiting -= messages_.size();
  on_link_ = 0;
  for (const Message& message : std::exchange(messages_, {})) {
    if (give(message)) continue;
    message.request->status = BITRAIL_ERR_ABORTED;
    message.request->text = "the connection to " + inner_->peer_address() + " was closed";
    message.request->done = true;
    if (message.request->on_done != nullptr) message.request->on_done(message.request);
  }
}

Status EmulatedSender::isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie,
                             Memory* memory, Request* request, bool* accepted) {
  *accepted = false;
  if (link_->closed) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  if (messages_.size() >= kMaxWaiting) return {};
  request->done = false;
  request->status = BITRAIL_OK;
  *accepted = true;
  messages_.push_back({data, bytes, tag, memory, request, now_ns(), 0, 0, cookie, false});
  link_->waiting++;
  link_->serve();
  return {};
}

bool EmulatedSender::reserve_one(int64_t now, int64_t* busy_until) {
  Message& message = messages_[on_link_];
  const size_t payload = std::min(kQuantumBytes, message.bytes - message.reserved);
  int64_t when = 0;
  if (!reserve(link_->shape, link_->mine, peers_, wire_bytes(payload, !message.started),
               message.queued_ns, now, &when)) {
    *busy_until = when;
    return false;
  }
  message.started = true;
  message.reserved += payload;
  message.delivered_ns = std::max(message.delivered_ns, when);
  if (message.reserved == message.bytes) on_link_++;
  return true;
}

// False: not now.
bool EmulatedSender::give(const Message& message) {
  bool accepted = false;
  const Status status = inner_->isend(message.data, message.bytes, message.tag, message.cookie,
                                      message.memory, message.request, &accepted);
  if (status.ok()) return accepted;
  message.request->status = status.code();
  message.request->text = status.text();
  message.request->done = true;
  if (message.request->on_done != nullptr) message.request->on_done(message.request);
  return true;
}

int EmulatedSender::hand_over(int64_t now) {
  int count = 0;
  while (on_link_ > 0 && messages_.front().delivered_ns <= now) {
    const Message message = messages_.front();
    // Off the queue first: the request's callback may send the next message.
    messages_.pop_front();
    on_link_--;
    if (!give(message)) {
      messages_.push_front(message);
      on_link_++;
      break;
    }
    link_->waiting--;
    count++;
  }
  return count;
}

int64_t EmulatedSender::next_delivery_ns() const {
  return on_link_ > 0 ? messages_.front().delivered_ns : INT64_MAX;
}

int Link::serve() {
  if (waiting == 0) return 0;
  const int64_t now = now_ns();
  int64_t busy_until = 0;
  // A turn of all senders without one that wants the link ends the round.
  for (size_t idle = 0; idle < senders.size() && busy_until == 0;) {
    turn = (turn + 1) % senders.size();
    if (!senders[turn]->wants_link()) {
      idle++;
      continue;
    }
    idle = 0;
    senders[turn]->reserve_one(now, &busy_until);
  }
  int count = 0;
  for (size_t i = 0; i < senders.size(); i++) count += senders[i]->hand_over(now);
  return count;
}

int64_t Link::next_timer_ns() const {
  if (waiting == 0) return INT64_MAX;
  int64_t next = INT64_MAX;
  for (const EmulatedSender* sender : senders) {
    next = std::min(next, sender->next_delivery_ns());
    if (sender->wants_link()) {
      next = std::min(next, mine->tx_next_ns.load(std::memory_order_relaxed));
    }
  }
  return next;
}

}  // namespace bitrail::transport::emulated
