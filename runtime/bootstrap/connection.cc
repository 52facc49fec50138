#include "runtime/bootstrap/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace bitrail::bootstrap {

Connection::Connection(UniqueFd socket, Side side, const World& world, int64_t timeout_ms)
    : socket_(std::move(socket)),
      address_(to_text(peer_address(socket_.get()))),
      proof_(side, world.secret, world.job_id, world.rank) {
  tune(fd(), timeout_ms);
  outbox_ = proof_.take_output();
  flush();
}

void Connection::take(std::span<const uint8_t> bytes) {
  if (!proof_.done()) {
    size_t used = 0;
    status_ = proof_.feed(bytes, &used);
    const std::vector<uint8_t> answer = proof_.take_output();
    outbox_.insert(outbox_.end(), answer.begin(), answer.end());
    flush();
    bytes = bytes.subspan(used);
  }
  if (status_.ok() && proof_.done()) status_ = parser_.feed(bytes);
  if (!status_.ok()) closed_ = true;
}

void Connection::receive() {
  constexpr size_t kMost = size_t{1} << 20;
  std::array<uint8_t, 16384> buffer;
  for (size_t total = 0; !closed_ && total < kMost;) {
    const ssize_t count = recv(fd(), buffer.data(), buffer.size(), 0);
    if (count > 0) {
      take(std::span(buffer).first(static_cast<size_t>(count)));
      total += static_cast<size_t>(count);
    } else if (count == 0) {
      closed_ = true;
      detail_ = "it closed the connection";
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      closed_ = true;
      detail_ = std::strerror(errno);
    }
  }
}

void Connection::send(Kind kind, std::span<const uint8_t> payload) {
  const std::vector<uint8_t> frame = encode(kind, payload);
  outbox_.insert(outbox_.end(), frame.begin(), frame.end());
  flush();
}

void Connection::flush() {
  size_t sent = 0;
  while (sent < outbox_.size() && !send_failed_) {
    const ssize_t count =
        ::send(fd(), outbox_.data() + sent, outbox_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      send_failed_ = true;  // the peer is gone; receive() finds out how
    }
  }
  outbox_.erase(outbox_.begin(), outbox_.begin() + static_cast<ptrdiff_t>(sent));
  if (send_failed_) outbox_.clear();
}

void Connection::finish_sending() {
  flush();
  (void)shutdown(fd(), SHUT_WR);
}

}  // namespace bitrail::bootstrap
