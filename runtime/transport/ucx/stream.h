// Long messages over TCP where UCX has nothing better than TCP either: through the socket of the
// connection's set-up, kept, in the connection's direction. UCX 1.13 cuts an active message over
// TCP into fragments of 8 KiB with a system call each; a socket that is written from the sender's
// memory and read into the receiver's, in large pieces, is several times as fast.
//
// Frames: ChunkHeader, then its bytes. As all chunks they are sent after a grant, and dropped by
// the receiver when it does not know their receive id any more. Both ends belong to one thread at a
// time, the worker's.
#pragma once

#include <string>

#include "runtime/transport/side_channel.h"
#include "runtime/transport/ucx/message.h"
#include "runtime/transport/ucx/operations.h"

namespace bitrail::transport::ucx {

// Bytes of a frame: what is longer travels as several.
constexpr uint64_t kFrameBytes = 1 << 30;
constexpr size_t kMostAtOnce = 1 << 20;  // bytes of a system call
constexpr int kCalls = 8;                // of one turn, so that others get theirs

// Who sends. From within ready(), push() and remove().
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  virtual void streamed(SendOp* op) = 0;  // all of it is in the kernel's hands
  virtual void stream_lost(const std::string& why) = 0;
};

class OutStream : private SideEvent {
 public:
  // Takes `fd` over, a connected socket that does not block. `waiting` counts the streams that
  // wait for room, which are to be polled.
  OutStream(SidePoller* poller, int fd, int* waiting, FrameSource* source);
  ~OutStream() override;
  OutStream(const OutStream&) = delete;
  OutStream& operator=(const OutStream&) = delete;

  // Sends op->bytes, op->size of them, to op->receive_id, after what was pushed before.
  void push(SendOp* op);
  // Takes it out again. When a part of it is on its way the stream is of no use any more: it is
  // closed, and the peer sees that.
  void remove(SendOp* op);

 private:
  void ready() override;
  void begin_frame();
  bool write_some();  // false: no more for now
  void wait(bool wanted);
  void close_socket();
  void lose(const std::string& why);

  SidePoller* poller_;
  int fd_;
  int* waiting_;
  FrameSource* source_;
  bool watched_ = false;
  SendOp* first_ = nullptr;  // linked by SendOp::later
  SendOp* last_ = nullptr;
  ChunkHeader header_{};     // of the frame that is being sent
  size_t header_sent_ = 0;   // bytes of it
  uint64_t frame_left_ = 0;  // bytes after it; 0: between frames
};

// Who receives. From within ready().
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A frame begins. False: it cannot be of an honest peer.
  virtual bool frame(const ChunkHeader& header) = 0;
  // Where its first byte belongs, if there is still a place for it; null: nobody wants it.
  virtual uint8_t* place(const ChunkHeader& header) = 0;
  // So many more bytes of it were put there.
  virtual void placed(const ChunkHeader& header, size_t bytes) = 0;
  // The peer has closed it between frames.
  virtual void stream_ended() = 0;
  virtual void stream_lost(bitrail_status_t status, const std::string& why) = 0;
};

class InStream : private SideEvent {
 public:
  InStream(SidePoller* poller, int fd, FrameSink* sink);  // takes `fd` over
  ~InStream() override;
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;
  // BITRAIL_ERR_SYSTEM: the kernel will not watch the socket.
  Status open();

 private:
  void ready() override;
  bool read_some();  // false: no more for now
  void read(size_t bytes, bool placed);
  void close_socket();
  void lose(bitrail_status_t status, const std::string& why);

  SidePoller* poller_;
  int fd_;
  FrameSink* sink_;
  bool watched_ = false;
  uint8_t header_bytes_[sizeof(ChunkHeader)];
  size_t header_got_ = 0;
  ChunkHeader header_{};    // of the frame that is being read
  uint64_t frame_got_ = 0;  // bytes of it
};

}  // namespace bitrail::transport::ucx
