// Non-blocking TCP sockets: an owned descriptor, listen, connect, accept, options.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "runtime/bootstrap/address.h"

namespace bitrail::bootstrap {

class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// *in_use: another socket listens there already (then it fails too).
Status listen_at(const Address& address, UniqueFd* listener, bool* in_use);
// All addresses of this host, both families where there are both; a free port.
Status listen_anywhere(UniqueFd* listener);
// Waits for the connection until the deadline.
Status connect_to(const Address& address, Deadline deadline, UniqueFd* socket);
// *socket stays empty when nobody is waiting.
Status accept_from(int listener, UniqueFd* socket);

// Small messages at once; a host that stays silent for about three quarters of timeout_ms counts as
// gone (keepalive probes and TCP_USER_TIMEOUT). What the system refuses of this is left out.
void tune(int fd, int64_t timeout_ms);

}  // namespace bitrail::bootstrap
