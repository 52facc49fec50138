// The small TCP channel over which a connection is set up: non-blocking, one exchange, then closed
// or handed over (ucx/stream.h).
//
// The connector connects to the listener named in the handle; both prove the job's secret
// (bootstrap/proof.h) before anything else is read; then each sends one bounded blob, the
// connector first. What is in the blobs is the transport's business.
//
// Everything is polled: ready() is called when the descriptor is (by SidePoller::poll) or by anyone
// who wants to see whether a deadline has passed.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/bootstrap/proof.h"
#include "runtime/transport/handle.h"
#include "runtime/transport/transport.h"

namespace bitrail::transport {

constexpr size_t kMaxBlobBytes = 64 << 10;

// Who connects has this long for its side of the set-up, and so many may be at it at once; both
// bound what strangers can hold.
constexpr int64_t kIncomingMs = 10'000;
constexpr size_t kMaxIncoming = 1024;

// "rank 3 at 10.0.0.1:4711"; the address alone where the rank (-1) is not known.
std::string peer_name(int rank, const std::string& address);

// Reads "u32 length, bytes" from a stream. Pure: no I/O.
class BlobReader {
 public:
  // Takes what belongs to the blob. BITRAIL_ERR_PROTOCOL when the length is 0 or above
  // kMaxBlobBytes.
  Status feed(std::span<const uint8_t> bytes, size_t* used);
  bool done() const { return done_; }
  const std::vector<uint8_t>& blob() const { return blob_; }

 private:
  std::vector<uint8_t> blob_;
  uint8_t length_[4] = {};
  size_t length_bytes_ = 0, wanted_ = 0;
  bool done_ = false;
};

class SideEvent {
 public:
  virtual ~SideEvent() = default;
  virtual void ready() = 0;
};

// An epoll set of side-channel sockets. Its own descriptor can be slept on.
class SidePoller {
 public:
  SidePoller() = default;
  ~SidePoller();
  SidePoller(const SidePoller&) = delete;
  SidePoller& operator=(const SidePoller&) = delete;

  Status open();
  int fd() const { return fd_; }
  int watched() const { return watched_; }
  Status add(int fd, uint32_t events, SideEvent* event);
  void change(int fd, uint32_t events, SideEvent* event);
  void remove(int fd);
  // Calls ready() of what is; the number of those. Never blocks.
  int poll();

 private:
  int fd_ = -1;
  int watched_ = 0;
};

// One set-up in flight.
class SideSession : public SideEvent {
 public:
  static Status connect(SidePoller* poller, const sockaddr_storage& address,
                        const Identity& identity, Deadline deadline,
                        std::unique_ptr<SideSession>* session);
  // Takes over `fd`, a non-blocking socket from accept4().
  static Status adopt(SidePoller* poller, int fd, const sockaddr_storage& address,
                      const Identity& identity, Deadline deadline,
                      std::unique_ptr<SideSession>* session);
  ~SideSession() override;

  void ready() override;
  void send(const std::vector<uint8_t>& blob);  // once; goes out when the proof is done
  const Status& status() const { return status_; }
  bool proven() const { return proof_.done(); }
  bool has_blob() const { return reader_.done(); }
  const std::vector<uint8_t>& blob() const { return reader_.blob(); }
  bool all_sent() const { return blob_given_ && proof_.done() && output_.empty(); }
  int peer_rank() const { return proof_.peer_rank(); }
  const std::string& peer_address() const { return peer_address_; }
  int64_t deadline_ns() const { return deadline_.at_ns; }
  // The connected socket, for other use, once the exchange is over; the session has none then.
  int release();
  // After a failure: the alert is on its way and the peer has closed, or time is up.
  bool drained() const { return fd_ < 0; }

 private:
  SideSession(SidePoller* poller, int fd, bootstrap::Side side, const sockaddr_storage& address,
              const Identity& identity, Deadline deadline);
  void fail(Status status);
  void finish_connect();
  void read_input();
  Status consume(std::span<const uint8_t> bytes, size_t* used);
  void write_output();
  void drain();
  void watch();
  void close_socket();

  SidePoller* poller_;
  int fd_;
  bool connecting_;
  bool blob_given_ = false, blob_queued_ = false;
  uint32_t events_ = 0;
  bootstrap::Proof proof_;
  std::string peer_address_;
  Deadline deadline_;
  Status status_;
  BlobReader reader_;
  std::vector<uint8_t> output_, blob_out_;
};

// A listening socket that hands out accepted descriptors.
class SideListener {
 public:
  ~SideListener();
  Status open(SidePoller* poller, const sockaddr_storage& address, SideEvent* event);
  // -1 when nobody waits.
  int accept(sockaddr_storage* peer);
  const sockaddr_storage& address() const { return address_; }

 private:
  SidePoller* poller_ = nullptr;
  int fd_ = -1;
  sockaddr_storage address_{};
};

}  // namespace bitrail::transport
