// One bootstrap socket: proves the job's secret first, then carries frames. Never blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/frame.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/bootstrap/socket.h"

namespace bitrail::bootstrap {

class Connection {
 public:
  // timeout_ms: how long a silent host may stay silent; see tune().
  Connection(UniqueFd socket, Side side, const World& world, int64_t timeout_ms);

  int fd() const { return socket_.get(); }
  const std::string& address() const { return address_; }  // the peer's
  Address local() const { return local_address(fd()); }

  // Takes what arrived (at most 1 MiB a call). Afterwards look at proven(), next(), closed().
  void receive();
  // Queues and sends as much as the socket takes. A failed send shows as closed() by receive()
  // after what the peer said before it went.
  void send(Kind kind, std::span<const uint8_t> payload = {});
  void flush();
  bool wants_to_send() const { return !outbox_.empty(); }

  bool proven() const { return proof_.done(); }
  int peer_rank() const { return proof_.peer_rank(); }
  // Only after the proof.
  bool next(Frame* frame) { return parser_.next(frame); }

  // The peer is gone or was refused; frames that came before may still wait in next().
  bool closed() const { return closed_; }
  // Why the proof or the framing failed; OK when the peer just went, detail() tells how.
  const Status& status() const { return status_; }
  const std::string& detail() const { return detail_; }

  // Ends sending, so that the peer reads everything (the alert) before it sees the end.
  void finish_sending();

 private:
  void take(std::span<const uint8_t> bytes);

  UniqueFd socket_;
  std::string address_;
  Proof proof_;
  FrameParser parser_;
  std::vector<uint8_t> outbox_;
  bool closed_ = false, send_failed_ = false;
  Status status_;
  std::string detail_;
};

}  // namespace bitrail::bootstrap
