#include "plugin/settings/interfaces.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cerrno>
#include <cstring>

namespace bitrail::plugin {
namespace {

// Text of an IPv4 or global IPv6 address; empty for anything else.
std::string address_of(const ifaddrs& entry) {
  char text[INET6_ADDRSTRLEN] = "";
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return {};
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in four;
    memcpy(&four, entry.ifa_addr, sizeof(four));
    inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 six;
    memcpy(&six, entry.ifa_addr, sizeof(six));
    if (IN6_IS_ADDR_LINKLOCAL(&six.sin6_addr)) return {};
    inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
  }
  return text;
}

bool has_family(const ifaddrs& entry, const std::string& family) {
  if (family == "AF_INET") return entry.ifa_addr->sa_family == AF_INET;
  if (family == "AF_INET6") return entry.ifa_addr->sa_family == AF_INET6;
  return true;
}

}  // namespace

bool fits(std::string_view list, std::string_view name) {
  const bool exclude = list.starts_with('^');
  if (exclude) list.remove_prefix(1);
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  if (list.empty()) return true;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const std::string_view word = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (word.empty()) continue;
    if (exact ? name == word : name.starts_with(word)) return !exclude;
  }
  return exclude;
}

Status choose_address(const std::string& list, const std::string& family, std::string* address) {
  ifaddrs* entries = nullptr;
  if (getifaddrs(&entries) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "cannot list network interfaces: {}", strerror(errno));
  }
  std::string found, loopback;
  for (const ifaddrs* entry = entries; entry != nullptr && found.empty(); entry = entry->ifa_next) {
    const std::string text = address_of(*entry);
    if (text.empty() || !has_family(*entry, family) || !fits(list, entry->ifa_name)) continue;
    if ((entry->ifa_flags & IFF_LOOPBACK) == 0) {
      found = text;
    } else if (loopback.empty()) {
      loopback = text;
    }
  }
  freeifaddrs(entries);
  *address = found.empty() ? loopback : found;
  if (!address->empty()) return {};
  return failure(BITRAIL_ERR_CONFIG,
                 "no interface that is up fits NCCL_SOCKET_IFNAME='{}' NCCL_SOCKET_FAMILY='{}'; "
                 "correct them or set BITRAIL_INTERFACE",
                 list, family);
}

}  // namespace bitrail::plugin
