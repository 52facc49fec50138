#include "runtime/bootstrap/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace bitrail::bootstrap {
namespace {

constexpr int kBacklog = 1024;  // a whole job may connect at once

UniqueFd open_socket(int family) {
  return UniqueFd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
}

void set_option(int fd, int level, int name, int value) {
  (void)setsockopt(fd, level, name, &value, sizeof value);
}

Status bind_and_listen(UniqueFd socket, const Address& address, UniqueFd* listener, bool* in_use) {
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (!socket || bind(socket.get(), address.raw(), address.length) != 0 ||
      listen(socket.get(), kBacklog) != 0) {
    const int error = errno;
    *in_use = error == EADDRINUSE;
    return failure(BITRAIL_ERR_SYSTEM, "cannot listen at {}: {}", to_text(address),
                   std::strerror(error));
  }
  *listener = std::move(socket);
  return {};
}

}  // namespace

Status listen_at(const Address& address, UniqueFd* listener, bool* in_use) {
  *in_use = false;
  return bind_and_listen(open_socket(address.storage.ss_family), address, listener, in_use);
}

Status listen_anywhere(UniqueFd* listener) {
  bool in_use = false;
  Address any;
  auto* in6 = reinterpret_cast<sockaddr_in6*>(&any.storage);
  in6->sin6_family = AF_INET6;
  any.length = sizeof *in6;
  UniqueFd socket = open_socket(AF_INET6);
  if (socket) {
    set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
    if (bind_and_listen(std::move(socket), any, listener, &in_use).ok()) return {};
  }
  any = {};
  any.storage.ss_family = AF_INET;
  any.length = sizeof(sockaddr_in);
  return bind_and_listen(open_socket(AF_INET), any, listener, &in_use);
}

Status connect_to(const Address& address, Deadline deadline, UniqueFd* socket) {
  UniqueFd made = open_socket(address.storage.ss_family);
  int error = made ? 0 : errno;
  if (made && connect(made.get(), address.raw(), address.length) != 0) error = errno;
  if (error == EINPROGRESS) {
    pollfd entry{made.get(), POLLOUT, 0};
    do {
      const int ready = ::poll(&entry, 1, deadline.left_ms(1000));
      if (ready > 0) break;
      if (ready < 0 && errno != EINTR) return failure(BITRAIL_ERR_SYSTEM, "poll failed");
    } while (!deadline.passed());
    socklen_t length = sizeof error;
    if (entry.revents == 0) {
      error = ETIMEDOUT;
    } else if (getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
      error = errno;
    }
  }
  // While nobody listens at a local port, TCP may connect a socket to itself, and would then keep
  // the port from whom it waits for.
  if (error == 0 && to_text(local_address(made.get())) == to_text(peer_address(made.get()))) {
    error = ECONNREFUSED;
  }
  if (error != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "cannot connect to {}: {}", to_text(address),
                   std::strerror(error));
  }
  *socket = std::move(made);
  return {};
}

Status accept_from(int listener, UniqueFd* socket) {
  const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) {
    socket->reset(fd);
    return {};
  }
  // Errors of the peer's connection, not of the listener: as if nobody had come.
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENETUNREACH:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENONET:
      return {};
    default:
      return failure(BITRAIL_ERR_SYSTEM, "accept at {}: {}", to_text(local_address(listener)),
                     std::strerror(errno));
  }
}

void tune(int fd, int64_t timeout_ms) {
  // Seconds: the first probe after one quarter of silence, one more each quarter, the end after
  // three; so a silent host is known before a collective runs into the timeout itself.
  const int quarter = static_cast<int>(std::clamp<int64_t>(timeout_ms / 4000, 1, 3600));
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, quarter);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, quarter);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 2);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, quarter * 2750);
}

}  // namespace bitrail::bootstrap
