#include "runtime/transport/ucx/message.h"

namespace bitrail::transport::ucx {
namespace {

constexpr uint32_t kMagic = 0x47725442;  // "BTrG"

struct Layout {
  uint32_t magic;
  uint16_t version, kind;
  uint64_t nonce, boot, namespaces, probe_address, probe_value;
  uint32_t pid, connection, has_cma, refused, worker_bytes, stream;
};
static_assert(sizeof(Layout) == 72);

}  // namespace

std::vector<uint8_t> encode_greeting(const Greeting& greeting) {
  const Layout layout{.magic = kMagic,
                      .version = kProtocolVersion,
                      .kind = static_cast<uint16_t>(Kind::ucx),
                      .nonce = greeting.nonce,
                      .boot = greeting.host.boot,
                      .namespaces = greeting.host.namespaces,
                      .probe_address = greeting.probe_address,
                      .probe_value = greeting.probe_value,
                      .pid = greeting.pid,
                      .connection = greeting.connection,
                      .has_cma = greeting.has_cma,
                      .refused = greeting.refused,
                      .worker_bytes = static_cast<uint32_t>(greeting.worker.size()),
                      .stream = greeting.stream};
  std::vector<uint8_t> bytes(sizeof(layout) + greeting.worker.size());
  memcpy(bytes.data(), &layout, sizeof(layout));
  if (!greeting.worker.empty()) {
    memcpy(bytes.data() + sizeof(layout), greeting.worker.data(), greeting.worker.size());
  }
  return bytes;
}

Status decode_greeting(const std::vector<uint8_t>& bytes, Greeting* greeting) {
  Layout layout;
  if (bytes.size() < sizeof(layout)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message of {} bytes is too short", bytes.size());
  }
  memcpy(&layout, bytes.data(), sizeof(layout));
  if (layout.magic != kMagic || layout.kind != static_cast<uint16_t>(Kind::ucx)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message is not of transport ucx");
  }
  if (layout.version != kProtocolVersion) {
    return failure(BITRAIL_ERR_PROTOCOL,
                   "the peer speaks transport protocol version {}, this rank version {}; all ranks "
                   "need the same BitRail",
                   layout.version, kProtocolVersion);
  }
  if (layout.worker_bytes != bytes.size() - sizeof(layout)) {
    return failure(BITRAIL_ERR_PROTOCOL, "set-up message's length is inconsistent");
  }
  greeting->nonce = layout.nonce;
  greeting->host = {layout.boot, layout.namespaces};
  greeting->probe_address = layout.probe_address;
  greeting->probe_value = layout.probe_value;
  greeting->pid = layout.pid;
  greeting->connection = layout.connection;
  greeting->has_cma = layout.has_cma;
  greeting->refused = layout.refused;
  greeting->stream = layout.stream;
  greeting->worker.assign(bytes.begin() + sizeof(layout), bytes.end());
  return {};
}

}  // namespace bitrail::transport::ucx
