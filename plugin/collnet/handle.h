// What listen() gives to NCCL for all ranks: who made it, how it reduces, and where and with which
// secret the others meet this rank if it is the first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/abi/types.h"
#include "plugin/collnet/instance.h"
#include "runtime/bootstrap/address.h"

namespace bitrail::plugin::collnet {

// Raised when these bytes or what ranks tell each other behind them changes.
constexpr uint16_t kHandleVersion = 1;
constexpr size_t kMostAddresses = 5;

using Nonce = std::array<uint8_t, 16>;

struct Meeting {
  Mode mode = Mode::off;
  uint64_t comm_id = 0;
  Nonce nonce{};  // random; only who has the handle knows it
  std::vector<bootstrap::Address> addresses;
};

// `handle` has room for nccl::kHandleBytes. Addresses beyond kMostAddresses are left out.
void encode_handle(const Meeting& meeting, void* handle);
// These bytes come from the network. `rank` is whose they are, for messages. BITRAIL_ERR_PROTOCOL
// when they make no sense or are another version's.
Status decode_handle(const void* handle, int rank, Meeting* meeting);

}  // namespace bitrail::plugin::collnet
