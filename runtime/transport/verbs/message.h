// What two ends of a connection write to each other, byte by byte: the set-up's greeting, the
// entries of the rings, and the immediates that say what has arrived. Pure: no verbs call.
//
// Each end owns a ring of 64-byte units that the other writes entries to, in order, over the first
// queue pair. An entry lies in one piece (one that does not fit before the ring's end starts at its
// beginning) and is announced by an immediate with its place.
//
//   sender to receiver
//     eager     tag, bytes, cookie, payload; id: the receive, when its `clear` is known, else 0
//     announce  tag, bytes, cookie, send id      "I have a long message and no `clear` for it"
//     record    id, bytes, cookie, mask          a long message: its data come over these QPs
//     dropped   id, bytes, cookie                a message too long for the receive that it meets
//   receiver to sender
//     clear     tag, address, bytes, rkeys; id   clear to send: a buffer waits for this tag
//     grant     the same, send id                the buffer for an announced message
//     refuse    send id                          the announced message did not fit: done
//
// `consumed` in every entry tells how much of the opposite ring its writer had taken by then. It
// returns the space, and it tells which `clear` and which message of one tag crossed on the way:
// both ends then match them by the same rule (sender.cc, receiver.cc).
//
// Little-endian, read with memcpy; ids are IdTable's. Nothing here is trusted before it is parsed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::transport::verbs {

constexpr int kMaxRails = 4;        // ports of one connection
constexpr int kMaxQueuePairs = 32;  // of one connection, over all rails
constexpr uint32_t kUnitBytes = 64;
constexpr uint32_t kMaxRingUnits = 1 << 16;
constexpr uint64_t kMaxMessageBytes = uint64_t{64} << 30;

enum class Signal : uint8_t {
  data,    // value: receive id. All that this QP carries of the message is there
  entry,   // value: the entry's place in the ring, in units
  credit,  // value: the low 30 bits of `consumed`
  hello,   // the connector is ready: from now on it may be written to
  goodbye  // the peer closes; nothing follows
};
struct Immediate {
  Signal signal;
  uint32_t value;
};
constexpr uint32_t kIdBits = 31, kCreditBits = 30;
uint32_t encode_immediate(Immediate immediate);
bool parse_immediate(uint32_t bits, Immediate* immediate);

enum class EntryKind : uint16_t {
  eager = 1,
  announce = 2,
  record = 3,
  dropped = 4,
  clear = 5,
  grant = 6,
  refuse = 7
};

struct Entry {
  EntryKind kind = EntryKind::eager;
  uint32_t position = 0;  // where it starts, counted in units since the connection's start
  uint32_t consumed = 0;
  uint32_t units = 0;  // set by parsing
  uint32_t id = 0;     // of the receive; 0: none
  uint32_t send_id = 0;
  uint64_t tag = 0, bytes = 0;
  uint32_t cookie = 0;
  uint32_t mask = 0;  // of QPs
  uint64_t address = 0;
  uint32_t rkeys[kMaxRails] = {};
  const uint8_t* payload = nullptr;  // eager; into what was parsed
};

constexpr size_t kEntryHeaderBytes = 64;  // of all but eager
constexpr size_t kEagerHeaderBytes = 40;
constexpr uint32_t entry_units(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kUnitBytes - 1) / kUnitBytes);
}
// Writes the entry at `to`, payload included; its length.
size_t encode_entry(const Entry& entry, uint8_t* to);
// False for what is no entry or longer than `available`.
bool parse_entry(const uint8_t* from, size_t available, Entry* entry);

// One end of a queue pair.
struct QueuePairFacts {
  uint32_t number = 0, psn = 0;
  uint8_t gid[16] = {};
  uint16_t lid = 0;
  uint8_t mtu = 0;    // ibv_mtu
  uint8_t roce = 0;   // else InfiniBand
  uint8_t rail = 0;   // which port of the connection
  uint8_t reads = 0;  // max_qp_rd_atom
  uint32_t speed_mbps = 0;
};

struct Greeting {
  uint64_t nonce = 0;         // the listener's, from its handle
  uint64_t ring_address = 0;  // where the peer writes its entries
  uint32_t ring_rkey = 0, ring_units = 0;
  uint32_t eager_bytes = 0;  // messages up to here come as eager entries
  uint32_t refused = 0;      // a bitrail_status_t, `reason` then says why
  std::vector<QueuePairFacts> queue_pairs;
  std::string reason;
};
std::vector<uint8_t> encode_greeting(const Greeting& greeting);
// BITRAIL_ERR_PROTOCOL for other versions, other transports and nonsense.
Status decode_greeting(const std::vector<uint8_t>& bytes, Greeting* greeting);

}  // namespace bitrail::transport::verbs
