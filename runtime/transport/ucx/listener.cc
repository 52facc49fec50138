#include "runtime/transport/ucx/listener.h"

#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/trace/log.h"
#include "runtime/transport/ucx/receiver.h"
#include "runtime/transport/ucx/sender.h"
#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {
namespace {

// Can this process read that one's memory? Containers and Yama often forbid it.
bool can_read(const Greeting& theirs) {
  uint64_t value = 0;
  iovec mine{&value, sizeof(value)};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in the other process
  iovec remote{reinterpret_cast<void*>(theirs.probe_address), sizeof(value)};
  const ssize_t n = process_vm_readv(static_cast<pid_t>(theirs.pid), &mine, 1, &remote, 1, 0);
  return n == sizeof(value) && value == theirs.probe_value;
}

Greeting own_greeting(const Worker& worker) {
  Greeting greeting;
  greeting.host = host_id();
  greeting.pid = static_cast<uint32_t>(getpid());
  greeting.probe_address = reinterpret_cast<uint64_t>(worker.probe());
  greeting.probe_value = worker.nonce();
  greeting.has_cma = worker.has_cma() ? 1 : 0;
  greeting.stream = worker.only_tcp(false) ? 1 : 0;
  greeting.worker = worker.address();
  return greeting;
}

}  // namespace

UcxListener::UcxListener(std::shared_ptr<Worker> worker) : worker_(std::move(worker)) {
  worker_->listeners.push_back(this);
}

UcxListener::~UcxListener() { std::erase(worker_->listeners, this); }

Status UcxListener::open(const sockaddr_storage& address, Handle* handle) {
  if (getrandom(&nonce_, sizeof(nonce_), 0) != sizeof(nonce_)) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", strerror(errno));
  }
  BITRAIL_TRY(socket_.open(worker_->poller(), address, this));
  *handle = encode_handle(Kind::ucx, {socket_.address(), nonce_});
  return {};
}

Status UcxListener::accept(std::unique_ptr<Receiver>* receiver, Peer* peer) {
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

void UcxListener::ready() {
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

void UcxListener::service() {
  const int64_t now = incoming_.empty() ? 0 : now_ns();
  for (const auto& incoming : incoming_) {
    SideSession& session = *incoming->session;
    if (now >= session.deadline_ns()) session.ready();
    if (session.status().ok() && session.has_blob() && !incoming->answered) greet(incoming.get());
    if (!session.status().ok() && !incoming->reported) {
      // Not an error of accept(): anybody can knock at the door.
      log::warn("refused a connection: {}", session.status().text());
      incoming->reported = true;
    }
  }
  std::erase_if(incoming_, [this](const std::unique_ptr<Incoming>& incoming) {
    SideSession& session = *incoming->session;
    if (!session.status().ok()) return session.drained();
    if (!incoming->answered || !session.all_sent()) return false;
    if (incoming->receiver != nullptr) accepted(incoming.get());
    return true;
  });
}

void UcxListener::accepted(Incoming* incoming) {
  SideSession& session = *incoming->session;
  if (incoming->stream) {
    const Status status = incoming->receiver->use_stream(session.release());
    if (!status.ok()) {
      log::warn("refused {}: {}", peer_name(session.peer_rank(), session.peer_address()),
                status.text());
      return;  // closed: the peer finds out
    }
  }
  ready_.push_back({std::move(incoming->receiver), session.peer_rank()});
}

void UcxListener::greet(Incoming* incoming) {
  Greeting ours = own_greeting(*worker_);
  const Status status = welcome(incoming, &ours);
  if (!status.ok()) {
    log::warn("refused {}: {}",
              peer_name(incoming->session->peer_rank(), incoming->session->peer_address()),
              status.text());
    ours.refused = static_cast<uint32_t>(status.code());
    const std::string text = status.text();
    ours.worker.assign(text.begin(), text.end());
  }
  incoming->answered = true;
  incoming->session->send(encode_greeting(ours));
}

Status UcxListener::welcome(Incoming* incoming, Greeting* ours) {
  Greeting theirs;
  BITRAIL_TRY(decode_greeting(incoming->session->blob(), &theirs));
  if (theirs.nonce != nonce_) {
    return failure(BITRAIL_ERR_PROTOCOL, "the handle is stale: its listener is gone");
  }
  if (theirs.worker.empty()) return failure(BITRAIL_ERR_PROTOCOL, "no UCX address was sent");
  const bool local = theirs.host == ours->host;
  const SideSession& session = *incoming->session;
  Endpoint* endpoint = nullptr;
  BITRAIL_TRY(worker_->endpoint(theirs.worker, local,
                                peer_name(session.peer_rank(), session.peer_address()), &endpoint));
  incoming->receiver = std::make_unique<UcxReceiver>(worker_, endpoint);
  ours->connection = incoming->receiver->connection();
  incoming->stream = theirs.stream != 0 && worker_->only_tcp(local);
  ours->stream = incoming->stream ? 1 : 0;
  ours->has_cma = local && theirs.has_cma != 0 && worker_->has_cma() && can_read(theirs) ? 1 : 0;
  return {};
}

int64_t UcxListener::next_timer_ns() const {
  int64_t next = INT64_MAX;
  for (const auto& incoming : incoming_) {
    next = std::min(next, incoming->session->deadline_ns());
  }
  return next;
}

Status UcxConnecting::start(const Handle& handle, const Peer& peer, Deadline deadline) {
  ListenAddress address;
  BITRAIL_TRY(decode_handle(handle, Kind::ucx, &address));
  rank_ = peer.rank;
  const Status status = SideSession::connect(worker_->poller(), address.socket,
                                             worker_->options().identity, deadline, &session_);
  if (!status.ok()) return with_name(status);
  Greeting greeting = own_greeting(*worker_);
  greeting.nonce = address.nonce;
  session_->send(encode_greeting(greeting));
  return {};
}

Status UcxConnecting::with_name(const Status& status) const {
  if (status.ok() || rank_ < 0) return status;
  return failure(status.code(), "rank {}: {}", rank_, status.text());
}

Status UcxConnecting::poll(std::unique_ptr<Sender>* sender) {
  if (worker_->closed()) return failure(BITRAIL_ERR_BROKEN, "the transport context was closed");
  session_->ready();
  if (!session_->status().ok()) return with_name(session_->status());
  if (!session_->has_blob()) return {};
  return with_name(finish(sender));
}

Status UcxConnecting::finish(std::unique_ptr<Sender>* sender) {
  Greeting theirs;
  BITRAIL_TRY(decode_greeting(session_->blob(), &theirs));
  if (rank_ >= 0 && session_->peer_rank() != rank_) {
    return failure(BITRAIL_ERR_PROTOCOL, "the listener at {} is rank {}, not the one wanted",
                   session_->peer_address(), session_->peer_rank());
  }
  if (theirs.refused != 0) {
    return failure(BITRAIL_ERR_PROTOCOL, "refused by {}: {}", session_->peer_address(),
                   std::string(theirs.worker.begin(), theirs.worker.end()));
  }
  if (theirs.worker.empty()) return failure(BITRAIL_ERR_PROTOCOL, "no UCX address was sent");
  Endpoint* endpoint = nullptr;
  BITRAIL_TRY(worker_->endpoint(theirs.worker, theirs.host == host_id(),
                                peer_name(session_->peer_rank(), session_->peer_address()),
                                &endpoint));
  auto made =
      std::make_unique<UcxSender>(worker_, endpoint, theirs.connection, theirs.has_cma != 0);
  if (theirs.stream != 0) made->use_stream(session_->release());
  *sender = std::move(made);
  return {};
}

}  // namespace bitrail::transport::ucx
