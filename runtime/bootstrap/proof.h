// Mutual proof of a job's secret over any byte stream, before anything else is read from the peer.
//
// Both sides send a hello: magic, version, job id hash, rank, 32 random bytes. Each answers with
// HMAC-SHA256(secret, role || both hellos). A side that cannot verify sends an alert with the
// reason, so that both ends report the same distinct error. No I/O here: the caller moves bytes.
// All sizes are bounded (kMaxBuffered); bytes from the network are parsed in parse().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::bootstrap {

enum class Side : uint8_t { connector, acceptor };

class Proof {
 public:
  // An empty secret is allowed and is reported as BITRAIL_ERR_SECRET_MISSING at both ends.
  Proof(Side side, std::string secret, std::string job_id, int rank);

  // Bytes to write to the peer now (call after construction and after each feed); cleared by
  // taking.
  std::vector<uint8_t> take_output();
  // Gives bytes from the peer. Consumes at most what belongs to the proof; *used tells how many.
  // Fails with BITRAIL_ERR_SECRET_MISSING, _SECRET_WRONG, _JOB_ID, _PROTOCOL. Take and send the
  // output even then: it is the alert.
  Status feed(std::span<const uint8_t> bytes, size_t* used);

  bool done() const;      // both directions are proven
  int peer_rank() const;  // as proven; -1 before
  // 32 bytes shared by both sides of this connection only, for deriving keys or tokens.
  std::span<const uint8_t> session() const;

 private:
  struct State;
  std::vector<uint8_t> output_;
  std::vector<uint8_t> input_;
  Side side_;
  std::string secret_, job_id_;
  int rank_, peer_rank_ = -1;
  int phase_ = 0;
  std::vector<uint8_t> my_hello_, peer_hello_, session_;
};

}  // namespace bitrail::bootstrap
