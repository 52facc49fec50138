// Which host this is, in the sense of "may share memory with": the machine's boot and the network,
// IPC and PID namespaces. Ranks in different containers or network namespaces are different hosts.
#pragma once

#include <cstdint>

namespace bitrail::transport {

struct HostId {
  uint64_t boot = 0;
  uint64_t namespaces = 0;
  bool operator==(const HostId&) const = default;
};

HostId host_id();

}  // namespace bitrail::transport
