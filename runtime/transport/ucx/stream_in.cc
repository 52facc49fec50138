#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/transport/ucx/stream.h"

namespace bitrail::transport::ucx {

InStream::InStream(SidePoller* poller, int fd, FrameSink* sink)
    : poller_(poller), fd_(fd), sink_(sink) {}

InStream::~InStream() { close_socket(); }

Status InStream::open() {
  BITRAIL_TRY(poller_->add(fd_, EPOLLIN, this));
  watched_ = true;
  return {};
}

void InStream::ready() {
  for (int i = 0; i < kCalls && fd_ >= 0; i++) {
    if (!read_some()) break;
  }
}

// The rest of the frame and, in the same call, the header of the next one.
bool InStream::read_some() {
  thread_local uint8_t unwanted[1 << 16];  // written by the kernel, read by nobody
  iovec parts[2];
  size_t count = 0;
  bool placed = false;
  if (header_got_ == sizeof(header_)) {
    uint8_t* place = sink_->place(header_);
    placed = place != nullptr;
    const uint64_t left = header_.bytes - frame_got_;
    const size_t most = std::min<uint64_t>(left, placed ? kMostAtOnce : sizeof(unwanted));
    parts[count++] = {placed ? place + frame_got_ : unwanted, most};
    if (most == left) parts[count++] = {header_bytes_, sizeof(header_)};
  } else {
    parts[count++] = {header_bytes_ + header_got_, sizeof(header_) - header_got_};
  }
  const size_t wanted = parts[0].iov_len + (count > 1 ? parts[1].iov_len : 0);
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = count;
  const ssize_t n = recvmsg(fd_, &message, MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) lose(BITRAIL_ERR_PEER_LOST, strerror(errno));
    return false;
  }
  if (n == 0) {
    if (header_got_ > 0) {
      lose(BITRAIL_ERR_PEER_LOST, "it was closed in the middle of a message");
    } else {
      close_socket();
      sink_->stream_ended();
    }
    return false;
  }
  read(static_cast<size_t>(n), placed);
  return static_cast<size_t>(n) == wanted;  // less: there is no more yet
}

void InStream::read(size_t bytes, bool placed) {
  if (header_got_ == sizeof(header_)) {
    const size_t of_frame = std::min<uint64_t>(bytes, header_.bytes - frame_got_);
    frame_got_ += of_frame;
    if (frame_got_ == header_.bytes) header_got_ = 0;
    bytes -= of_frame;
    if (placed) sink_->placed(header_, of_frame);
  }
  header_got_ += bytes;
  if (header_got_ != sizeof(header_) || bytes == 0) return;
  memcpy(&header_, header_bytes_, sizeof(header_));
  frame_got_ = 0;
  if (header_.bytes == 0 || header_.bytes > kFrameBytes || !sink_->frame(header_)) {
    lose(BITRAIL_ERR_PROTOCOL, "it carries what is no part of a message");
  }
}

void InStream::close_socket() {
  if (fd_ < 0) return;
  if (watched_) poller_->remove(fd_);
  watched_ = false;
  close(fd_);
  fd_ = -1;
}

void InStream::lose(bitrail_status_t status, const std::string& why) {
  close_socket();
  sink_->stream_lost(status, why);
}

}  // namespace bitrail::transport::ucx
