// NCCL's way to choose network interfaces (NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY).
#pragma once

#include <string>
#include <string_view>

#include "runtime/common/status.h"

namespace bitrail::plugin {

// Does `name` fit a list like "eth,ib0", "^docker,lo" (none of these) or "=eth0" (exact names, not
// beginnings)? An empty list fits all.
bool fits(std::string_view list, std::string_view name);

// The address of the first interface that is up, fits `list` and has `family` ("AF_INET",
// "AF_INET6" or empty); loopback only when nothing else does. BITRAIL_ERR_CONFIG naming the
// variable when there is none.
Status choose_address(const std::string& list, const std::string& family, std::string* address);

}  // namespace bitrail::plugin
