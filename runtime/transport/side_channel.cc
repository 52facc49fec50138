#include "runtime/transport/side_channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace bitrail::transport {
namespace {

sockaddr* as_sockaddr(sockaddr_storage* address) { return reinterpret_cast<sockaddr*>(address); }
const sockaddr* as_sockaddr(const sockaddr_storage* address) {
  return reinterpret_cast<const sockaddr*>(address);
}

// A peer that is gone, or our side of the network?
bitrail_status_t code_of(int error) {
  return error == ECONNREFUSED || error == ECONNRESET || error == EPIPE ? BITRAIL_ERR_PEER_LOST
                                                                        : BITRAIL_ERR_SYSTEM;
}

}  // namespace

std::string peer_name(int rank, const std::string& address) {
  return rank < 0 ? address : fmt::format("rank {} at {}", rank, address);
}

Status BlobReader::feed(std::span<const uint8_t> bytes, size_t* used) {
  *used = 0;
  if (done_) return {};
  while (length_bytes_ < sizeof(length_) && *used < bytes.size()) {
    length_[length_bytes_++] = bytes[(*used)++];
    if (length_bytes_ < sizeof(length_)) continue;
    uint32_t length = 0;
    memcpy(&length, length_, sizeof(length));
    if (length == 0 || length > kMaxBlobBytes) {
      return failure(BITRAIL_ERR_PROTOCOL, "set-up message of {} bytes, allowed are 1 to {}",
                     length, kMaxBlobBytes);
    }
    wanted_ = length;
    blob_.reserve(wanted_);
  }
  if (length_bytes_ < sizeof(length_)) return {};
  const size_t take = std::min(wanted_ - blob_.size(), bytes.size() - *used);
  blob_.insert(blob_.end(), bytes.begin() + static_cast<std::ptrdiff_t>(*used),
               bytes.begin() + static_cast<std::ptrdiff_t>(*used + take));
  *used += take;
  done_ = blob_.size() == wanted_;
  return {};
}

SidePoller::~SidePoller() {
  if (fd_ >= 0) close(fd_);
}

Status SidePoller::open() {
  fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (fd_ >= 0) return {};
  return failure(BITRAIL_ERR_SYSTEM, "epoll_create1: {}", strerror(errno));
}

Status SidePoller::add(int fd, uint32_t events, SideEvent* event) {
  epoll_event entry{};
  entry.events = events;
  entry.data.ptr = event;
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &entry) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "epoll_ctl: {}", strerror(errno));
  }
  watched_++;
  return {};
}

void SidePoller::change(int fd, uint32_t events, SideEvent* event) {
  epoll_event entry{};
  entry.events = events;
  entry.data.ptr = event;
  epoll_ctl(fd_, EPOLL_CTL_MOD, fd, &entry);
}

void SidePoller::remove(int fd) {
  epoll_ctl(fd_, EPOLL_CTL_DEL, fd, nullptr);
  watched_--;
}

int SidePoller::poll() {
  if (watched_ == 0) return 0;
  int count = 0;
  // One event a turn: ready() may end other sessions, whose pointers a longer batch would still
  // hold. The bound keeps a socket that stays ready from holding the caller.
  for (; count < 64; count++) {
    epoll_event event{};
    if (epoll_wait(fd_, &event, 1, 0) <= 0) break;
    static_cast<SideEvent*>(event.data.ptr)->ready();
  }
  return count;
}

SideSession::SideSession(SidePoller* poller, int fd, bootstrap::Side side,
                         const sockaddr_storage& address, const Identity& identity,
                         Deadline deadline)
    : poller_(poller),
      fd_(fd),
      connecting_(side == bootstrap::Side::connector),
      proof_(side, identity.secret, identity.job_id, identity.rank),
      peer_address_(address_text(address)),
      deadline_(deadline) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  output_ = proof_.take_output();
}

SideSession::~SideSession() { close_socket(); }

Status SideSession::connect(SidePoller* poller, const sockaddr_storage& address,
                            const Identity& identity, Deadline deadline,
                            std::unique_ptr<SideSession>* session) {
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return failure(BITRAIL_ERR_SYSTEM, "connect to {}: socket: {}", address_text(address),
                   strerror(errno));
  }
  if (::connect(fd, as_sockaddr(&address), address_length(address)) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    close(fd);
    return failure(code_of(error), "connect to {}: {}; see BITRAIL_INTERFACE",
                   address_text(address), strerror(error));
  }
  std::unique_ptr<SideSession> made(
      new SideSession(poller, fd, bootstrap::Side::connector, address, identity, deadline));
  made->events_ = EPOLLIN | EPOLLOUT;
  BITRAIL_TRY(poller->add(fd, made->events_, made.get()));
  *session = std::move(made);
  return {};
}

Status SideSession::adopt(SidePoller* poller, int fd, const sockaddr_storage& address,
                          const Identity& identity, Deadline deadline,
                          std::unique_ptr<SideSession>* session) {
  std::unique_ptr<SideSession> made(
      new SideSession(poller, fd, bootstrap::Side::acceptor, address, identity, deadline));
  made->events_ = EPOLLIN | EPOLLOUT;
  BITRAIL_TRY(poller->add(fd, made->events_, made.get()));
  *session = std::move(made);
  return {};
}

void SideSession::close_socket() {
  if (fd_ < 0) return;
  if (events_ != 0) poller_->remove(fd_);
  // Unread bytes would turn the close into a reset, which can overtake the alert just sent.
  shutdown(fd_, SHUT_WR);
  char scratch[1024];
  while (recv(fd_, scratch, sizeof(scratch), MSG_DONTWAIT) > 0) {
  }
  close(fd_);
  fd_ = -1;
}

int SideSession::release() {
  if (fd_ >= 0 && events_ != 0) poller_->remove(fd_);
  events_ = 0;
  return std::exchange(fd_, -1);
}

void SideSession::fail(Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  write_output();
  if (fd_ >= 0) shutdown(fd_, SHUT_WR);
  output_.clear();
}

void SideSession::send(const std::vector<uint8_t>& blob) {
  const auto length = static_cast<uint32_t>(blob.size());
  blob_out_.resize(sizeof(length) + blob.size());
  memcpy(blob_out_.data(), &length, sizeof(length));
  memcpy(blob_out_.data() + sizeof(length), blob.data(), blob.size());
  blob_given_ = true;
  ready();
}

void SideSession::ready() {
  if (fd_ < 0) return;
  if (!status_.ok()) return drain();
  if (connecting_) finish_connect();
  if (status_.ok() && !connecting_) {
    write_output();
    read_input();
    if (status_.ok() && proof_.done() && blob_given_ && !blob_queued_) {
      output_.insert(output_.end(), blob_out_.begin(), blob_out_.end());
      blob_queued_ = true;
    }
    write_output();
  }
  if (status_.ok() && deadline_.passed() && !(has_blob() && all_sent())) {
    fail(failure(BITRAIL_ERR_TIMEOUT, "connection set-up with {}: {} in time (BITRAIL_TIMEOUT_MS)",
                 peer_address_,
                 connecting_ ? "no TCP connection" : "the peer did not complete its side"));
  }
  watch();
}

void SideSession::finish_connect() {
  int error = 0;
  socklen_t bytes = sizeof(error);
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0) {
    fail(failure(code_of(error), "connect to {}: {}; see BITRAIL_INTERFACE", peer_address_,
                 strerror(error)));
    return;
  }
  sockaddr_storage peer{};
  socklen_t length = sizeof(peer);
  if (getpeername(fd_, as_sockaddr(&peer), &length) == 0) connecting_ = false;
}

void SideSession::write_output() {
  while (fd_ >= 0 && !output_.empty()) {
    const ssize_t n = ::send(fd_, output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      output_.erase(output_.begin(), output_.begin() + n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) {
      // What the peer said before it closed (an alert) is the better error: read_input() decides.
      output_.clear();
    }
    return;
  }
}

void SideSession::read_input() {
  uint8_t bytes[4096];
  while (status_.ok()) {
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      if (has_blob() && all_sent()) return;  // the exchange is over, closing is in order
      const int error = n == 0 ? 0 : errno;
      fail(failure(error == 0 ? BITRAIL_ERR_PEER_LOST : code_of(error),
                   "connection set-up with {}: {}", peer_address_,
                   error == 0 ? "the peer closed the connection" : strerror(error)));
      return;
    }
    std::span<const uint8_t> rest(bytes, static_cast<size_t>(n));
    while (!rest.empty() && status_.ok()) {
      size_t used = 0;
      const Status status = consume(rest, &used);
      if (!status.ok()) {
        fail(failure(status.code(), "connection set-up with {}: {}", peer_address_, status.text()));
      }
      rest = rest.subspan(used);
    }
  }
}

// Takes what belongs to the proof or to the blob.
Status SideSession::consume(std::span<const uint8_t> bytes, size_t* used) {
  if (proof_.done()) {
    BITRAIL_TRY(reader_.feed(bytes, used));
    if (*used > 0) return {};
    return failure(BITRAIL_ERR_PROTOCOL, "bytes after the set-up message");
  }
  Status status = proof_.feed(bytes, used);
  const std::vector<uint8_t> answer = proof_.take_output();
  output_.insert(output_.end(), answer.begin(), answer.end());
  return status;
}

// After a failure: reads and drops until the peer has closed, so that the alert arrives.
void SideSession::drain() {
  char scratch[1024];
  ssize_t n = 0;
  do {
    n = recv(fd_, scratch, sizeof(scratch), MSG_DONTWAIT);
  } while (n > 0);
  if (n == 0 || errno != EAGAIN || deadline_.passed()) return close_socket();
  watch();
}

void SideSession::watch() {
  if (fd_ < 0) return;
  uint32_t wanted = EPOLLIN;
  if (status_.ok() && (connecting_ || !output_.empty())) wanted |= EPOLLOUT;
  // Done: the peer's close must not keep the descriptor ready.
  if (status_.ok() && has_blob() && all_sent()) wanted = 0;
  if (wanted == events_) return;
  if (wanted == 0) {
    poller_->remove(fd_);
  } else {
    poller_->change(fd_, wanted, this);
  }
  events_ = wanted;
}

SideListener::~SideListener() {
  if (fd_ < 0) return;
  poller_->remove(fd_);
  close(fd_);
}

Status SideListener::open(SidePoller* poller, const sockaddr_storage& address, SideEvent* event) {
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return failure(BITRAIL_ERR_SYSTEM, "listen: socket: {}", strerror(errno));
  socklen_t length = address_length(address);
  address_ = address;
  if (bind(fd, as_sockaddr(&address_), length) != 0 || ::listen(fd, 1024) != 0 ||
      getsockname(fd, as_sockaddr(&address_), &length) != 0) {
    const int error = errno;
    ::close(fd);
    return failure(BITRAIL_ERR_SYSTEM, "listen on {}: {}; see BITRAIL_INTERFACE",
                   address_text(address_), strerror(error));
  }
  Status added = poller->add(fd, EPOLLIN, event);
  if (!added.ok()) {
    ::close(fd);
    return added;
  }
  poller_ = poller;
  fd_ = fd;
  return {};
}

int SideListener::accept(sockaddr_storage* peer) {
  socklen_t length = sizeof(*peer);
  return accept4(fd_, as_sockaddr(peer), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

}  // namespace bitrail::transport
