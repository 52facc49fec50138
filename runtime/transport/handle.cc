#include "runtime/transport/handle.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace bitrail::transport {
namespace {

constexpr uint32_t kMagic = 0x31725442;  // "BTr1"

// Little-endian, as all of BitRail's formats. 128 bytes at most.
struct Layout {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint64_t nonce;
  uint16_t family;  // 4 or 6
  uint16_t port;    // host order
  uint32_t scope;
  uint8_t address[16];
};
static_assert(sizeof(Layout) == 40 && sizeof(Layout) <= sizeof(Handle));

}  // namespace

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::ucx:
      return "ucx";
    case Kind::verbs:
      return "verbs";
  }
  return "unknown";
}

socklen_t address_length(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 six;
    memcpy(&six, &address, sizeof(six));
    inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
    return fmt::format("[{}]:{}", text, ntohs(six.sin6_port));
  }
  sockaddr_in four;
  memcpy(&four, &address, sizeof(four));
  inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
  return fmt::format("{}:{}", text, ntohs(four.sin_port));
}

Handle encode_handle(Kind kind, const ListenAddress& address) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kProtocolVersion;
  layout.kind = static_cast<uint16_t>(kind);
  layout.nonce = address.nonce;
  if (address.socket.ss_family == AF_INET6) {
    sockaddr_in6 six;
    memcpy(&six, &address.socket, sizeof(six));
    layout.family = 6;
    layout.port = ntohs(six.sin6_port);
    layout.scope = six.sin6_scope_id;
    memcpy(layout.address, &six.sin6_addr, 16);
  } else {
    sockaddr_in four;
    memcpy(&four, &address.socket, sizeof(four));
    layout.family = 4;
    layout.port = ntohs(four.sin_port);
    memcpy(layout.address, &four.sin_addr, 4);
  }
  Handle handle;
  memcpy(handle.bytes.data(), &layout, sizeof(layout));
  return handle;
}

Status decode_handle(const Handle& handle, Kind kind, ListenAddress* address) {
  Layout layout;
  memcpy(&layout, handle.bytes.data(), sizeof(layout));
  if (layout.magic != kMagic) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "connect: the handle is not BitRail's (magic {:#010x}, expected {:#010x})",
                   layout.magic, kMagic);
  }
  if (layout.version != kProtocolVersion) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "connect: the peer speaks transport protocol version {}, this rank version {}; "
                   "all ranks need the same BitRail",
                   layout.version, kProtocolVersion);
  }
  if (layout.kind != static_cast<uint16_t>(kind)) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "connect: the peer listens on transport {}, this rank uses {}; set "
                   "BITRAIL_TRANSPORT alike on all ranks",
                   kind_name(static_cast<Kind>(layout.kind)), kind_name(kind));
  }
  if ((layout.family != 4 && layout.family != 6) || layout.port == 0) {
    return failure(BITRAIL_ERR_PROTOCOL, "connect: the handle's address is malformed");
  }
  *address = {};
  address->nonce = layout.nonce;
  if (layout.family == 6) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(layout.port);
    six.sin6_scope_id = layout.scope;
    memcpy(&six.sin6_addr, layout.address, 16);
    memcpy(&address->socket, &six, sizeof(six));
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(layout.port);
    memcpy(&four.sin_addr, layout.address, 4);
    memcpy(&address->socket, &four, sizeof(four));
  }
  return {};
}

}  // namespace bitrail::transport
