#include "runtime/transport/verbs/listener.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/trace/log.h"
#include "runtime/transport/verbs/receiver.h"
#include "runtime/transport/verbs/sender.h"
#include "runtime/transport/verbs/worker.h"

namespace bitrail::transport::verbs {
VerbsListener::VerbsListener(std::shared_ptr<Worker> worker, int device)
    : worker_(std::move(worker)), device_(device) {
  worker_->listeners.push_back(this);
}

VerbsListener::~VerbsListener() { std::erase(worker_->listeners, this); }

Status VerbsListener::open(const sockaddr_storage& address, Handle* handle) {
  if (getrandom(&nonce_, sizeof(nonce_), 0) != sizeof(nonce_)) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", strerror(errno));
  }
  BITRAIL_TRY(socket_.open(worker_->poller(), address, this));
  *handle = encode_handle(Kind::verbs, {socket_.address(), nonce_});
  return {};
}

Status VerbsListener::accept(std::unique_ptr<Receiver>* receiver, Peer* peer) {
  receiver->reset();
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  worker_->poller()->poll();
  service();
  if (ready_.empty()) return {};
  *receiver = std::move(ready_.front().receiver);
  peer->rank = ready_.front().rank;
  ready_.pop_front();
  return {};
}

void VerbsListener::ready() {
  for (;;) {
    sockaddr_storage peer{};
    const int fd = socket_.accept(&peer);
    if (fd < 0) return;
    if (incoming_.size() >= kMaxIncoming) {
      close(fd);
      continue;
    }
    auto incoming = std::make_unique<Incoming>();
    const Status status =
        SideSession::adopt(worker_->poller(), fd, peer, worker_->options().identity,
                           Deadline::in_ms(kIncomingMs), &incoming->session);
    if (status.ok()) incoming_.push_back(std::move(incoming));
  }
}

void VerbsListener::service() {
  const int64_t now = incoming_.empty() ? 0 : now_ns();
  for (const auto& incoming : incoming_) {
    SideSession& session = *incoming->session;
    if (now >= session.deadline_ns()) session.ready();
    if (session.status().ok() && session.has_blob() && !incoming->answered) greet(incoming.get());
    if (!session.status().ok() && !incoming->reported) {
      // Not an error of accept(): anybody can knock at the door.
      log::warn("refused a connection: {}", session.status().text());
      incoming->reported = true;
      incoming->receiver.reset();
    }
  }
  std::erase_if(incoming_, [this](const std::unique_ptr<Incoming>& incoming) {
    SideSession& session = *incoming->session;
    if (!session.status().ok()) return session.drained();
    if (!incoming->answered || !session.all_sent()) return false;
    if (incoming->receiver != nullptr) {
      ready_.push_back({std::move(incoming->receiver), session.peer_rank()});
    }
    return true;
  });
}

void VerbsListener::greet(Incoming* incoming) {
  bool done = false;
  const Status status = welcome(incoming, &done);
  if (status.ok() && !done) return;  // the device wants to be asked again
  Greeting ours;
  if (status.ok()) {
    ours = incoming->receiver->greeting();
  } else {
    log::warn("refused {}: {}",
              peer_name(incoming->session->peer_rank(), incoming->session->peer_address()),
              status.text());
    incoming->receiver.reset();
    ours.refused = static_cast<uint32_t>(status.code());
    ours.reason = status.text();
  }
  incoming->answered = true;
  incoming->session->send(encode_greeting(ours));
}

Status VerbsListener::welcome(Incoming* incoming, bool* done) {
  const SideSession& session = *incoming->session;
  if (incoming->receiver == nullptr) {
    BITRAIL_TRY(decode_greeting(session.blob(), &incoming->theirs));
    if (incoming->theirs.nonce != nonce_) {
      return failure(BITRAIL_ERR_PROTOCOL, "the handle is stale: its listener is gone");
    }
    if (incoming->theirs.refused != 0) {
      return failure(BITRAIL_ERR_PROTOCOL, "a connector cannot refuse");
    }
    incoming->receiver = std::make_unique<VerbsReceiver>(
        worker_, peer_name(session.peer_rank(), session.peer_address()));
    BITRAIL_TRY(incoming->receiver->answer(device_, incoming->theirs));
  }
  return incoming->receiver->connect(incoming->theirs, {session.deadline_ns()}, done);
}

int64_t VerbsListener::next_timer_ns() const {
  int64_t next = INT64_MAX;
  for (const auto& incoming : incoming_) {
    next = std::min(next, incoming->session->deadline_ns());
  }
  return next;
}

VerbsConnecting::VerbsConnecting(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {}
VerbsConnecting::~VerbsConnecting() = default;

Status VerbsConnecting::start(int device, const Handle& handle, const Peer& peer,
                              Deadline deadline) {
  ListenAddress address;
  BITRAIL_TRY(decode_handle(handle, Kind::verbs, &address));
  rank_ = peer.rank;
  deadline_ = deadline;
  sender_ = std::make_unique<VerbsSender>(worker_, peer_name(rank_, address_text(address.socket)));
  const Status offered = sender_->offer(device);
  if (!offered.ok()) return with_name(offered);
  const Status status = SideSession::connect(worker_->poller(), address.socket,
                                             worker_->options().identity, deadline, &session_);
  if (!status.ok()) return with_name(status);
  Greeting greeting = sender_->greeting();
  greeting.nonce = address.nonce;
  session_->send(encode_greeting(greeting));
  return {};
}

Status VerbsConnecting::with_name(const Status& status) const {
  if (status.ok() || rank_ < 0) return status;
  return failure(status.code(), "rank {}: {}", rank_, status.text());
}

Status VerbsConnecting::poll(std::unique_ptr<Sender>* sender) {
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  session_->ready();
  if (!session_->status().ok()) return with_name(session_->status());
  if (!session_->has_blob()) return {};
  if (!answered_) {
    const Status answer = read_answer();
    if (!answer.ok()) return with_name(answer);
    answered_ = true;
  }
  bool done = false;
  const Status status = sender_->connect(theirs_, deadline_, &done);
  if (!status.ok()) return with_name(status);
  if (done) *sender = std::move(sender_);
  return {};
}

Status VerbsConnecting::read_answer() {
  BITRAIL_TRY(decode_greeting(session_->blob(), &theirs_));
  if (rank_ >= 0 && session_->peer_rank() != rank_) {
    return failure(BITRAIL_ERR_PROTOCOL, "the listener at {} is rank {}, not the one wanted",
                   session_->peer_address(), session_->peer_rank());
  }
  if (theirs_.refused != 0) {
    return failure(BITRAIL_ERR_PROTOCOL, "refused by {}: {}", session_->peer_address(),
                   theirs_.reason);
  }
  sender_->set_name(peer_name(session_->peer_rank(), session_->peer_address()));
  return {};
}

}  // namespace bitrail::transport::verbs
