// Which entry of a port's GID table is this end's address.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"
#include "runtime/transport/verbs/options.h"

namespace bitrail::transport::verbs {

struct GidEntry {
  int index = 0;
  ibv_gid gid{};
  int version = 0;  // of RoCE; 0: the kernel does not tell (it belongs to another container)
};

// "10.0.0.0/8", "2001:db8::/32"; IPv4 in mapped form, so that one comparison serves both.
struct AddressRange {
  uint8_t bytes[16] = {};
  int bits = 0;  // 0: everything
};

// BITRAIL_ERR_CONFIG for what is no range. Empty text: everything.
Status parse_range(std::string_view text, AddressRange* range);
bool contains(const AddressRange& range, const ibv_gid& gid);

bool is_zero(const ibv_gid& gid);
bool is_link_local(const ibv_gid& gid);
bool is_ipv4(const ibv_gid& gid);
// "10.0.0.1", "fe80::1".
std::string gid_text(const ibv_gid& gid);

// The entries that are not zero.
Status read_gids(ibv_context* context, int port, int table_size, std::vector<GidEntry>* entries);

// `entries` of one port. A fixed index is taken whatever it is, if it is there. Otherwise on RoCE:
// never zero, link-local, of unknown version or outside the range; the preferred family before the
// preferred version before the lowest index. InfiniBand has its first. Failing lists what there
// was and names `port`.
Status choose_gid(const std::string& port, bool roce, const std::vector<GidEntry>& entries,
                  const IbOptions& options, GidEntry* chosen);

}  // namespace bitrail::transport::verbs
