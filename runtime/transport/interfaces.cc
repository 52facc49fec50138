#include "runtime/transport/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/transport/handle.h"

namespace bitrail::transport {
namespace {

// The address's text without a port.
std::string host_text(const sockaddr_storage& address) {
  std::string text = address_text(address);
  text.resize(text.rfind(':'));
  if (text.front() == '[') text = text.substr(1, text.size() - 2);
  return text;
}

bool usable(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  if (entry.ifa_addr->sa_family != AF_INET6) return false;
  sockaddr_in6 six;
  memcpy(&six, entry.ifa_addr, sizeof(six));
  return !IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr);
}

// Lower is better; -1 when `entry` does not fit.
int rank_of(const ifaddrs& entry, const sockaddr_storage& address, const std::string& wanted) {
  const bool six = entry.ifa_addr->sa_family == AF_INET6;
  const bool loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0;
  if (!wanted.empty() && wanted != entry.ifa_name && wanted != host_text(address)) return -1;
  return (loopback ? 2 : 0) + (six ? 1 : 0);
}

std::string read_sysfs(const std::string& path) {
  std::string text;
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return text;
  char line[128];
  if (fgets(line, sizeof(line), file) != nullptr) text = line;
  fclose(file);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

Status choose_interface(const std::string& wanted, Interface* chosen) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "cannot list network interfaces: {}", strerror(errno));
  }
  int best = INT_MAX;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (!usable(*entry)) continue;
    Interface candidate;
    candidate.name = entry->ifa_name;
    candidate.loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    memcpy(&candidate.address, entry->ifa_addr,
           entry->ifa_addr->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    const int rank = rank_of(*entry, candidate.address, wanted);
    if (rank < 0 || rank >= best) continue;
    best = rank;
    *chosen = candidate;
  }
  freeifaddrs(list);
  if (best != INT_MAX) return {};
  if (!wanted.empty()) {
    return failure(BITRAIL_ERR_CONFIG,
                   "no interface that is up has the name or address '{}'; set BITRAIL_INTERFACE",
                   wanted);
  }
  return failure(BITRAIL_ERR_SYSTEM,
                 "no network interface is up, not even loopback (ip link set lo up)");
}

void describe_interface(const Interface& interface, DeviceProperties* properties) {
  const std::string base = "/sys/class/net/" + interface.name;
  char resolved[PATH_MAX];
  if (realpath((base + "/device").c_str(), resolved) != nullptr) properties->pci_path = resolved;
  uint64_t guid = 0;
  for (const char c : read_sysfs(base + "/address")) {
    if (c == ':') continue;
    const int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
    guid = guid << 4 | static_cast<uint64_t>(digit & 15);
  }
  properties->guid = guid;
  const double speed = strtod(read_sysfs(base + "/speed").c_str(), nullptr);
  properties->speed_mbps = speed > 0 ? speed : 10'000;  // virtual links say -1
  const std::string node = read_sysfs(base + "/device/numa_node");
  if (!node.empty()) properties->numa_node = atoi(node.c_str());
}

}  // namespace bitrail::transport
