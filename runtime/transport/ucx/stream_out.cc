#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/transport/ucx/stream.h"

namespace bitrail::transport::ucx {

OutStream::OutStream(SidePoller* poller, int fd, int* waiting, FrameSource* source)
    : poller_(poller), fd_(fd), waiting_(waiting), source_(source) {}

OutStream::~OutStream() { close_socket(); }

void OutStream::push(SendOp* op) {
  op->later = nullptr;
  (last_ != nullptr ? last_->later : first_) = op;
  last_ = op;
  if (fd_ < 0) return lose("it was given up in the middle of a message");
  if (!watched_) ready();
}

void OutStream::remove(SendOp* op) {
  SendOp* before = nullptr;
  for (SendOp* item = first_; item != nullptr; before = item, item = item->later) {
    if (item != op) continue;
    (before != nullptr ? before->later : first_) = item->later;
    if (last_ == item) last_ = before;
    if (before == nullptr && frame_left_ > 0) close_socket();
    break;
  }
  if (first_ == nullptr) wait(false);
}

void OutStream::ready() {
  for (int i = 0; i < kCalls; i++) {
    if (!write_some()) break;
  }
  wait(first_ != nullptr);
}

void OutStream::begin_frame() {
  frame_left_ = std::min<uint64_t>(kFrameBytes, first_->size - first_->offset);
  header_ = {first_->receive_id, static_cast<uint32_t>(frame_left_), first_->offset};
  header_sent_ = 0;
}

bool OutStream::write_some() {
  if (first_ == nullptr || fd_ < 0) return false;
  SendOp* op = first_;
  if (frame_left_ == 0) begin_frame();
  const size_t header_left = sizeof(header_) - header_sent_;
  const size_t most = std::min<size_t>(frame_left_, kMostAtOnce);
  // The kernel only reads what an iovec of a send points to.
  iovec parts[2] = {{reinterpret_cast<uint8_t*>(&header_) + header_sent_, header_left},
                    {const_cast<uint8_t*>(op->bytes + op->offset), most}};
  msghdr message{};
  message.msg_iov = header_left > 0 ? parts : parts + 1;
  message.msg_iovlen = header_left > 0 ? 2 : 1;
  const ssize_t n = sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN && errno != ENOBUFS) lose(strerror(errno));
    return false;
  }
  const size_t of_header = std::min(static_cast<size_t>(n), header_left);
  header_sent_ += of_header;
  op->offset += static_cast<size_t>(n) - of_header;
  frame_left_ -= static_cast<size_t>(n) - of_header;
  if (op->offset == op->size) {
    first_ = op->later;
    if (first_ == nullptr) last_ = nullptr;
    source_->streamed(op);
  }
  return static_cast<size_t>(n) == header_left + most;  // less: no room
}

void OutStream::wait(bool wanted) {
  if (fd_ < 0 || wanted == watched_) return;
  if (!wanted) {
    poller_->remove(fd_);
  } else if (const Status status = poller_->add(fd_, EPOLLOUT, this); !status.ok()) {
    return lose(status.text());
  }
  *waiting_ += wanted ? 1 : -1;
  watched_ = wanted;
}

void OutStream::close_socket() {
  if (fd_ < 0) return;
  wait(false);
  close(fd_);
  fd_ = -1;
}

void OutStream::lose(const std::string& why) {
  close_socket();
  source_->stream_lost(why);
}

}  // namespace bitrail::transport::ucx
