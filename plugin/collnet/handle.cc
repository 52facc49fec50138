#include "plugin/collnet/handle.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace bitrail::plugin::collnet {
namespace {

constexpr uint32_t kMagic = 0x6c635442;  // "BTcl"
constexpr uint8_t kFour = 4, kSix = 6;

struct Place {
  uint8_t family;
  uint8_t bytes[16];
};
struct Layout {
  uint32_t magic;
  uint16_t version;
  uint8_t mode, places;
  uint64_t comm_id;
  uint8_t nonce[16];
  uint16_t port;
  Place place[kMostAddresses];
  uint8_t reserved[9];
};
static_assert(sizeof(Place) == 17 && sizeof(Layout) == nccl::kHandleBytes);

Place place_of(const bootstrap::Address& address) {
  Place place{};
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in four;
    memcpy(&four, &address.storage, sizeof(four));
    place.family = kFour;
    memcpy(place.bytes, &four.sin_addr, sizeof(four.sin_addr));
  } else {
    sockaddr_in6 six;
    memcpy(&six, &address.storage, sizeof(six));
    place.family = kSix;
    memcpy(place.bytes, &six.sin6_addr, sizeof(six.sin6_addr));
  }
  return place;
}

bool address_of(const Place& place, uint16_t port, bootstrap::Address* address) {
  if (place.family == kFour) {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    memcpy(&four.sin_addr, place.bytes, sizeof(four.sin_addr));
    memcpy(&address->storage, &four, sizeof(four));
    address->length = sizeof(four);
  } else if (place.family == kSix) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    memcpy(&six.sin6_addr, place.bytes, sizeof(six.sin6_addr));
    memcpy(&address->storage, &six, sizeof(six));
    address->length = sizeof(six);
  } else {
    return false;
  }
  bootstrap::set_port(address, port);
  return true;
}

}  // namespace

void encode_handle(const Meeting& meeting, void* handle) {
  Layout layout{};
  layout.magic = kMagic;
  layout.version = kHandleVersion;
  layout.mode = static_cast<uint8_t>(meeting.mode);
  layout.comm_id = meeting.comm_id;
  memcpy(layout.nonce, meeting.nonce.data(), meeting.nonce.size());
  const size_t count = std::min(meeting.addresses.size(), kMostAddresses);
  layout.places = static_cast<uint8_t>(count);
  for (size_t i = 0; i < count; i++) {
    layout.port = bootstrap::port_of(meeting.addresses[i]);
    layout.place[i] = place_of(meeting.addresses[i]);
  }
  memcpy(handle, &layout, sizeof(layout));
}

Status decode_handle(const void* handle, int rank, Meeting* meeting) {
  Layout layout;
  memcpy(&layout, handle, sizeof(layout));
  if (layout.magic != kMagic) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "the handle of rank {} is not of BitRail's CollNet (magic {:#010x}, expected "
                   "{:#010x}): set NCCL_NET_PLUGIN=bitrail and BITRAIL_COLLNET alike on all ranks",
                   rank, layout.magic, kMagic);
  }
  if (layout.version != kHandleVersion) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "rank {} makes CollNet handles of version {}, this one of version {}; all ranks "
                   "need the same BitRail",
                   rank, layout.version, kHandleVersion);
  }
  Status senseless =
      failure(BITRAIL_ERR_PROTOCOL, "the CollNet handle of rank {} makes no sense", rank);
  const bool known = layout.mode == static_cast<uint8_t>(Mode::exact) ||
                     layout.mode == static_cast<uint8_t>(Mode::onebit);
  if (!known || layout.places == 0 || layout.places > kMostAddresses || layout.port == 0) {
    return senseless;
  }
  *meeting = {};
  meeting->mode = static_cast<Mode>(layout.mode);
  meeting->comm_id = layout.comm_id;
  memcpy(meeting->nonce.data(), layout.nonce, meeting->nonce.size());
  for (size_t i = 0; i < layout.places; i++) {
    bootstrap::Address address;
    if (!address_of(layout.place[i], layout.port, &address)) return senseless;
    meeting->addresses.push_back(address);
  }
  // Bytes that say nothing are zero.
  uint8_t again[nccl::kHandleBytes];
  encode_handle(*meeting, again);
  if (memcmp(again, handle, sizeof(again)) != 0) return senseless;
  return {};
}

}  // namespace bitrail::plugin::collnet
