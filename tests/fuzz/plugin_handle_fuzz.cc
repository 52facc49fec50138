// NCCL's 128 bytes from a peer: what connect() of the plugin reads before it believes anything.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/net/handle.h"
#include "runtime/transport/handle.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail;  // NOLINT(google-build-using-namespace)

constexpr uint64_t kCommId = 0x0123456789abcdef;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  transport::ListenAddress address;
  address.nonce = 77;
  address.socket.ss_family = 2;
  const transport::Handle inner = transport::encode_handle(transport::Kind::ucx, address);
  std::vector<uint8_t> bytes(nccl::kHandleBytes);
  require(plugin::encode_handle(inner, kCommId, bytes.data()).ok());
  return {bytes};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint8_t handle[nccl::kHandleBytes] = {};
  if (size > 0) memcpy(handle, data, std::min(size, sizeof(handle)));
  transport::Handle inner;
  if (!plugin::decode_handle(handle, kCommId, &inner).ok()) return 0;
  // What was understood is what is written again.
  uint8_t again[nccl::kHandleBytes];
  require(plugin::encode_handle(inner, kCommId, again).ok());
  require(memcmp(handle, again, sizeof(handle)) == 0);
  for (const transport::Kind kind : {transport::Kind::ucx, transport::Kind::verbs}) {
    transport::ListenAddress address;
    (void)transport::decode_handle(inner, kind, &address);
  }
  return 0;
}
