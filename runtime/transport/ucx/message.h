// The headers in front of UCX active messages and the blobs of the side channel: their bytes.
//
//   data    connection, cookie, tag                  the message itself follows
//   brief   connection, cookie, tag, message         of at most kBriefBytes, all in UCX's payload
//   request connection, cookie, tag, bytes, send id  "I have a long message": the receiver answers
//   grant   send id, receive id, answer              "send it": a receive buffer is ready
//   chunk   receive id, bytes, offset                a part of a long message follows (bytes: 0 in
//                                                    active messages; see stream.h)
//   fence   number                                   before closing: "answer when you are here"
//   fenced  number                                   all that was sent before the fence has arrived
//
// All little-endian, fixed size, read with memcpy (UCX does not align them). Ids are made by
// IdTable and hold a generation, so that a late message cannot hit a later object.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/transport/handle.h"
#include "runtime/transport/host_id.h"

namespace bitrail::transport::ucx {

enum MessageId : unsigned {
  kData = 0,
  kRequest = 1,
  kGrant = 2,
  kChunk = 3,
  kFence = 4,
  kFenced = 5,
  kBrief = 6
};

struct DataHeader {
  uint32_t connection;
  uint32_t cookie;
  uint64_t tag;
};
// A header beside the payload takes UCX a slower way than one piece of memory.
constexpr size_t kBriefBytes = 64;
struct BriefMessage {
  DataHeader header;
  uint8_t bytes[kBriefBytes];
};
struct RequestHeader {
  uint32_t connection;
  uint32_t cookie;
  uint64_t tag;
  uint64_t bytes;
  uint32_t send_id;
  uint32_t zero;
};
enum Answer : uint32_t {
  kGone = 0,      // the connection is closed: the send fails
  kAccepted = 1,  // send it
  kDropped = 2    // it did not fit the receive: for the sender it is done
};
struct GrantHeader {
  uint32_t send_id;
  uint32_t receive_id;
  uint32_t answer;  // Answer
  uint32_t zero;
};
struct ChunkHeader {
  uint32_t receive_id;
  uint32_t bytes;
  uint64_t offset;
};
struct FenceHeader {
  uint64_t number;
};
static_assert(sizeof(FenceHeader) == 8 && sizeof(DataHeader) == 16 && sizeof(RequestHeader) == 32 &&
              sizeof(GrantHeader) == 16 && sizeof(ChunkHeader) == 16 &&
              sizeof(BriefMessage) == sizeof(DataHeader) + kBriefBytes);

// False when the length is not the header's.
template <typename Header>
bool parse_header(const void* bytes, size_t length, Header* header) {
  if (bytes == nullptr || length != sizeof(Header)) return false;
  memcpy(header, bytes, sizeof(Header));
  return true;
}

// Does a part of `bytes` bytes fit a receive of `expected` of which `got` are there? What does not
// is not from an honest peer.
inline bool chunk_fits(const ChunkHeader& header, size_t bytes, size_t expected, size_t got) {
  return got <= expected && bytes <= expected - got && header.offset <= expected - bytes;
}

// Splits a brief message's payload; *message points into it. False when it is too short or long.
inline bool parse_brief(void* payload, size_t length, DataHeader* header, uint8_t** message) {
  if (payload == nullptr || length < sizeof(DataHeader) || length > sizeof(BriefMessage)) {
    return false;
  }
  memcpy(header, payload, sizeof(DataHeader));
  *message = static_cast<uint8_t*>(payload) + sizeof(DataHeader);
  return true;
}

// What both ends tell each other over the side channel.
struct Greeting {
  uint64_t nonce = 0;  // the listener's, from its handle
  HostId host;
  uint64_t probe_address = 0;  // where `probe_value` lies in this process, to try CMA with
  uint64_t probe_value = 0;
  uint32_t pid = 0;
  uint32_t connection = 0;      // acceptor: the receiver's id
  uint32_t has_cma = 0;         // connector: UCX may use CMA here. acceptor: CMA works, both agree
  uint32_t stream = 0;          // connector: long messages may use this socket. acceptor: they do
  uint32_t refused = 0;         // acceptor: a bitrail_status_t, `worker` then holds the reason
  std::vector<uint8_t> worker;  // UCX worker address
};

std::vector<uint8_t> encode_greeting(const Greeting& greeting);
// BITRAIL_ERR_PROTOCOL for other versions, other transports and nonsense.
Status decode_greeting(const std::vector<uint8_t>& bytes, Greeting* greeting);

}  // namespace bitrail::transport::ucx
