// NCCL's 128 bytes from a peer: what connect() of CollNet reads before it believes anything.
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "plugin/collnet/handle.h"
#include "tests/fuzz/seeds.h"

namespace {

using namespace bitrail::plugin::collnet;  // NOLINT(google-build-using-namespace)

constexpr size_t kBytes = bitrail::nccl::kHandleBytes;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  Meeting meeting;
  meeting.mode = Mode::onebit;
  meeting.comm_id = 0x0123456789abcdef;
  meeting.nonce.fill(7);
  for (const int family : {AF_INET, AF_INET6}) {
    bitrail::bootstrap::Address address;
    address.storage.ss_family = static_cast<sa_family_t>(family);
    bitrail::bootstrap::set_port(&address, 4000);
    meeting.addresses.push_back(address);
  }
  std::vector<uint8_t> bytes(kBytes);
  encode_handle(meeting, bytes.data());
  return {bytes};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint8_t handle[kBytes] = {};
  if (size > 0) memcpy(handle, data, std::min(size, sizeof(handle)));
  Meeting meeting;
  if (!decode_handle(handle, 3, &meeting).ok()) return 0;
  require(!meeting.addresses.empty() && meeting.addresses.size() <= kMostAddresses);
  // What was understood is what is written again.
  uint8_t again[kBytes];
  encode_handle(meeting, again);
  require(memcmp(handle, again, sizeof(handle)) == 0);
  return 0;
}
