#include "plugin/net/handle.h"

#include <algorithm>
#include <cstring>

namespace bitrail::plugin {
namespace {

// "BTnc". As a socket address, which NCCL's own transports put first, its family is unknown: a
// peer without the plugin refuses it too.
constexpr uint32_t kMagic = 0x636e5442;

struct Layout {
  uint32_t magic;
  uint16_t version;
  uint16_t reserved;
  uint64_t comm_id;
  uint8_t inner[112];
};
static_assert(sizeof(Layout) == nccl::kHandleBytes);

}  // namespace

Status encode_handle(const transport::Handle& inner, uint64_t comm_id, void* handle) {
  Layout layout{kMagic, kHandleVersion, 0, comm_id, {}};
  if (std::any_of(inner.bytes.begin() + sizeof(layout.inner), inner.bytes.end(),
                  [](uint8_t byte) { return byte != 0; })) {
    return failure(BITRAIL_ERR_INTERNAL, "the transport's handle does not fit into NCCL's");
  }
  memcpy(layout.inner, inner.bytes.data(), sizeof(layout.inner));
  memcpy(handle, &layout, sizeof(layout));
  return {};
}

Status decode_handle(const void* handle, uint64_t comm_id, transport::Handle* inner) {
  Layout layout;
  memcpy(&layout, handle, sizeof(layout));
  if (layout.magic != kMagic) {
    return failure(
        BITRAIL_ERR_PROTOCOL,
        "the peer's handle is not BitRail's (magic {:#010x}, expected {:#010x}): it runs "
        "without this plugin; set NCCL_NET_PLUGIN=bitrail on all ranks and let all find "
        "libnccl-net-bitrail.so",
        layout.magic, kMagic);
  }
  if (layout.version != kHandleVersion || layout.reserved != 0) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "the peer's plugin makes handles of version {}, this one of version {}; all "
                   "ranks need the same BitRail",
                   layout.version, kHandleVersion);
  }
  if (layout.comm_id != comm_id) {
    return failure(BITRAIL_ERR_JOB_ID,
                   "the peer's handle is of communicator {:#018x}, this rank's is {:#018x}: "
                   "another job's handle, or ranks with different NCCL versions",
                   layout.comm_id, comm_id);
  }
  *inner = {};
  memcpy(inner->bytes.data(), layout.inner, sizeof(layout.inner));
  return {};
}

}  // namespace bitrail::plugin
