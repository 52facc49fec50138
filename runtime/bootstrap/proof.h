// Mutual proof of a job's secret over any byte stream, before anything else is read from the peer.
//
//   both:      hello  = side, has a secret, rank, SHA-256 of the job id, 32 random bytes
//   connector: answer = HMAC-SHA256(secret, label || connector || both hellos)
//   acceptor:  verifies, then answers the same with its own side in the label's place
//
// The acceptor answers only to who proved the secret first, so a listener is no oracle for guessing
// it; the side inside the MAC and in the hello stops reflection. A side that refuses sends an alert
// with the reason, so that both ends report the same distinct error. No I/O here: the caller moves
// bytes. What is kept of the peer's bytes never exceeds kProofMaxBuffered. The stream itself is
// neither encrypted nor authenticated afterwards: this keeps strangers and other jobs out, not
// somebody who rewrites packets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::bootstrap {

enum class Side : uint8_t { connector = 1, acceptor = 2 };

inline constexpr size_t kProofMaxBuffered = 128;

class Proof {
 public:
  // An empty secret is allowed and is reported as BITRAIL_ERR_SECRET_MISSING at both ends.
  Proof(Side side, std::string secret, std::string job_id, int rank);

  // Bytes to write to the peer now (call after construction and after each feed); cleared by
  // taking.
  std::vector<uint8_t> take_output();
  // Gives bytes from the peer. Consumes at most what belongs to the proof; *used tells how many.
  // Fails with BITRAIL_ERR_SECRET_MISSING, _SECRET_WRONG, _JOB_ID, _PROTOCOL, and from then on
  // always with the same. Take and send the output even then: it is the alert.
  Status feed(std::span<const uint8_t> bytes, size_t* used);

  bool done() const { return phase_ == Phase::done; }  // both directions are proven
  int peer_rank() const;                               // as proven; -1 before
  // 32 bytes known to both sides of this connection only, for deriving keys or tokens; empty
  // before.
  std::span<const uint8_t> session() const { return session_; }

 private:
  enum class Phase : uint8_t { hello, answer, done, failed };

  void send(uint8_t kind, std::span<const uint8_t> payload);
  Status fail(Status status, bool tell_peer);
  Status on_hello(std::span<const uint8_t> payload);
  Status on_answer(std::span<const uint8_t> payload);
  Status on_alert(std::span<const uint8_t> payload);
  std::vector<uint8_t> mac(const char* label, Side side) const;

  Side side_;
  Phase phase_ = Phase::hello;
  std::string secret_, job_id_;
  int rank_, peer_rank_ = -1;
  std::vector<uint8_t> output_, input_;  // input_: the frame that is arriving
  std::vector<uint8_t> my_hello_, peer_hello_, session_;
  Status failure_;
};

}  // namespace bitrail::bootstrap
