// What a Handle holds: where a listener's side channel is, which transport and protocol version it
// speaks, and a nonce that tells this listener from a later one on the same port.
#pragma once

#include <sys/socket.h>

#include "runtime/transport/transport.h"

namespace bitrail::transport {

// Raised whenever the handle, the side channel's blobs or a transport's messages change.
constexpr uint16_t kProtocolVersion = 3;

enum class Kind : uint16_t { ucx = 1, verbs = 2 };
const char* kind_name(Kind kind);  // "ucx", "verbs", "unknown"

struct ListenAddress {
  sockaddr_storage socket{};  // AF_INET or AF_INET6
  uint64_t nonce = 0;
};

Handle encode_handle(Kind kind, const ListenAddress& address);
// BITRAIL_ERR_PROTOCOL when these bytes are no handle, another version's or another transport's.
Status decode_handle(const Handle& handle, Kind kind, ListenAddress* address);

// "10.0.0.1:4711", "[fe80::1]:4711"
std::string address_text(const sockaddr_storage& address);
socklen_t address_length(const sockaddr_storage& address);

}  // namespace bitrail::transport
