// What two proven ranks say to each other on a bootstrap socket: frames of a kind and a payload.
//
// A frame: magic (4 bytes), kind (1), zero (3), payload bytes (4), payload. Integers are
// little-endian. Everything here parses bytes from the network and does no I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/common/status.h"

namespace bitrail::bootstrap {

enum class Kind : uint8_t {
  enlist = 1,   // to rank 0: Enlist
  welcome = 2,  // from rank 0: where the parent listens (text); empty: rank 0 is the parent
  child = 3,    // to the parent: Enlist
  gather = 4,   // up: Gather
  spread = 5,   // down: Spread
  failure = 6,  // any direction: Failure
  goodbye = 7,  // the sender leaves; nothing follows
};

inline constexpr size_t kMaxFrame = size_t{64} << 20;    // gather, spread
inline constexpr size_t kMaxControl = size_t{16} << 10;  // all others

struct Frame {
  Kind kind{};
  std::vector<uint8_t> payload;
};

std::vector<uint8_t> encode(Kind kind, std::span<const uint8_t> payload);

class FrameParser {
 public:
  // Fails with BITRAIL_ERR_PROTOCOL, from then on always.
  Status feed(std::span<const uint8_t> bytes);
  bool next(Frame* frame);

 private:
  std::vector<uint8_t> input_;  // the frame that is arriving; grows with what arrived, not with
                                // what was announced
  std::deque<Frame> frames_;
  Status failure_;
};

struct Enlist {
  int32_t rank = -1;
  int32_t size = 0;
  std::string address;  // where this rank listens
};
std::vector<uint8_t> encode(const Enlist& enlist);
bool decode(std::span<const uint8_t> payload, Enlist* enlist);

std::vector<uint8_t> encode(const Failure& failure);
// Texts are cut to 2 KiB and control characters replaced; the rank must be below `size`.
bool decode(std::span<const uint8_t> payload, int size, Failure* failure);

// Contributions of a subtree. `data` borrows from the payload: count x (rank, 4 bytes; `bytes`
// bytes).
struct Gather {
  uint32_t sequence = 0;
  uint32_t count = 0;
  uint64_t bytes = 0;  // of each contribution
  std::span<const uint8_t> data;
};
std::vector<uint8_t> encode_gather_header(uint32_t sequence, uint32_t count, uint64_t bytes);
bool decode(std::span<const uint8_t> payload, Gather* gather);

// Everybody's contributions by rank: size x bytes.
struct Spread {
  uint32_t sequence = 0;
  uint64_t bytes = 0;
  std::span<const uint8_t> data;
};
std::vector<uint8_t> encode_spread_header(uint32_t sequence, uint64_t bytes);
bool decode(std::span<const uint8_t> payload, int size, Spread* spread);

}  // namespace bitrail::bootstrap
