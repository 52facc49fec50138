// The plainest transport over TCP: one socket, a thread that blocks in it, a length before each
// message.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <fmt/core.h>

#include "runtime/common/clock.h"
#include "tools/bench/pipes/pipe.h"

namespace bitrail::bench {
namespace {

void read_all(int socket, void* data, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = recv(socket, data, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    must(got > 0, "the peer's socket fails");
    data = static_cast<char*>(data) + got;
    bytes -= static_cast<size_t>(got);
  }
}

class Tcp : public Pipe {
 public:
  explicit Tcp(const Setting& setting) : setting_(setting) {
    if (setting.rank == 1) {
      accept_peer();
    } else {
      connect_to_peer();
    }
    const int on = 1;
    must(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "TCP_NODELAY");
    const timeval patience{60, 0};
    must(setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0,
         "SO_RCVTIMEO");
    must(setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0,
         "SO_SNDTIMEO");
  }
  ~Tcp() override { close(socket_); }
  Tcp(const Tcp&) = delete;
  Tcp& operator=(const Tcp&) = delete;

  void swap() override {
    char out = 0, in = 0;
    must(::send(socket_, &out, 1, MSG_NOSIGNAL) == 1, "the peer's socket fails");
    read_all(socket_, &in, 1);
  }
  void send(const void* data, size_t count) override {
    for (size_t i = 0; i < count; i++) send_one(data);
  }
  void prepare(void* /*data*/, size_t /*count*/) override {}
  int64_t receive(void* data, size_t count) override {
    for (size_t i = 0; i < count; i++) {
      uint64_t length = 0;
      read_all(socket_, &length, sizeof length);
      must(length == setting_.bytes, "a message of another length");
      read_all(socket_, data, length);
    }
    return now_ns();
  }

 private:
  void send_one(const void* data) {
    uint64_t length = setting_.bytes;
    iovec parts[2] = {{&length, sizeof length}, {const_cast<void*>(data), setting_.bytes}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    size_t left = sizeof length + setting_.bytes;
    while (left > 0) {
      ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      must(sent > 0, "the peer's socket fails");
      left -= static_cast<size_t>(sent);
      for (iovec& part : parts) {
        const size_t step = std::min(part.iov_len, static_cast<size_t>(sent));
        part.iov_base = static_cast<char*>(part.iov_base) + step;
        part.iov_len -= step;
        sent -= static_cast<ssize_t>(step);
      }
    }
  }

  void accept_peer() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    must(inet_pton(AF_INET, setting_.address.c_str(), &place.sin_addr) == 1, "not an address");
    socklen_t length = sizeof place;
    must(bind(listener, reinterpret_cast<sockaddr*>(&place), length) == 0 &&
             listen(listener, 1) == 0 &&
             getsockname(listener, reinterpret_cast<sockaddr*>(&place), &length) == 0,
         "cannot listen");
    publish(setting_, "port", fmt::format("{}", ntohs(place.sin_port)));
    const timeval patience{60, 0};
    (void)setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    socket_ = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    must(socket_ >= 0, "nobody connects");
    close(listener);
  }
  void connect_to_peer() {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    must(inet_pton(AF_INET, setting_.address.c_str(), &place.sin_addr) == 1, "not an address");
    place.sin_port = htons(static_cast<uint16_t>(std::stoi(await(setting_, "port", 1))));
    must(connect(socket_, reinterpret_cast<sockaddr*>(&place), sizeof place) == 0,
         "cannot connect");
  }

  Setting setting_;
  int socket_ = -1;
};

}  // namespace

std::unique_ptr<Pipe> open_tcp(const Setting& setting) { return std::make_unique<Tcp>(setting); }

}  // namespace bitrail::bench
