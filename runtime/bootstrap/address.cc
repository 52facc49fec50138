#include "runtime/bootstrap/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace bitrail::bootstrap {
namespace {

struct Interface {
  std::string name;
  Address address;
  bool loopback;
};

Address copy_of(const sockaddr* from) {
  Address address;
  address.length = from->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&address.storage, from, address.length);
  return address;
}

bool link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

// Interfaces that are up, IPv4 before IPv6; link-local IPv6 addresses (they need a scope at the
// peer) are left out.
Status interfaces(std::vector<Interface>* found) {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) {
    return failure(BITRAIL_ERR_SYSTEM, "getifaddrs: {}", std::strerror(errno));
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, &freeifaddrs);
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
      const bool up = (entry->ifa_flags & IFF_UP) != 0;
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family || !up) continue;
      if (link_local(entry->ifa_addr)) continue;
      found->push_back(
          {entry->ifa_name, copy_of(entry->ifa_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  return {};
}

std::string host_text(const Address& address) {
  char host[INET6_ADDRSTRLEN] = "?";
  if (address.storage.ss_family == AF_INET) {
    const auto* in = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
  } else if (address.storage.ss_family == AF_INET6) {
    const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
    inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof host);
    // An IPv4 peer of a dual-stack listener.
    if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) return std::string(host).substr(7);
  }
  return host;
}

// One look-up, which its thread may finish after the waiter has given up.
struct Lookup {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  int error = 0;
  std::vector<Address> found;
};

int look_up(const std::string& host, int flags, std::vector<Address>* found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* raw = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &raw);
  if (error != 0) return error;
  for (const addrinfo* entry = raw; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6) {
      found->push_back(copy_of(entry->ai_addr));
    }
  }
  freeaddrinfo(raw);
  return found->empty() ? EAI_NONAME : 0;
}

}  // namespace

uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
  }
  if (address.storage.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
  }
  return 0;
}

void set_port(Address* address, uint16_t port) {
  if (address->storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address->storage)->sin_port = htons(port);
  } else if (address->storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address->storage)->sin6_port = htons(port);
  }
}

std::string to_text(const Address& address) {
  if (address.length == 0) return "?";
  const std::string host = host_text(address);
  const bool v6 = host.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", host, port_of(address))
            : fmt::format("{}:{}", host, port_of(address));
}

Status split_host_port(const std::string& text, const std::string& knob, std::string* host,
                       uint16_t* port) {
  const size_t colon = text.rfind(':');
  int number = 0;
  bool good = colon != std::string::npos && colon > 0;
  if (good) {
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, number);
    good = parsed.ec == std::errc() && parsed.ptr == end && number > 0 && number <= UINT16_MAX;
    *host = text.substr(0, colon);
    if (host->front() == '[' && host->back() == ']') *host = host->substr(1, host->size() - 2);
  }
  if (!good || host->empty()) {
    return failure(BITRAIL_ERR_CONFIG, "{}: '{}' is not host:port with a port from 1 to 65535",
                   knob, text.substr(0, 256));
  }
  *port = static_cast<uint16_t>(number);
  return {};
}

Status resolve(const std::string& host, uint16_t port, Deadline deadline,
               std::vector<Address>* addresses) {
  addresses->clear();
  if (look_up(host, AI_NUMERICHOST, addresses) != 0) {
    const auto lookup = std::make_shared<Lookup>();
    // Detached: getaddrinfo cannot be cancelled, and no wait may outlast its deadline.
    std::thread([lookup, host] {
      std::vector<Address> found;
      const int error = look_up(host, 0, &found);
      const std::lock_guard lock(lookup->mutex);
      lookup->found = std::move(found);
      lookup->error = error;
      lookup->done = true;
      lookup->changed.notify_all();
    }).detach();
    std::unique_lock lock(lookup->mutex);
    const bool done = lookup->changed.wait_for(
        lock, std::chrono::milliseconds(deadline.left_ms(INT32_MAX)), [&] { return lookup->done; });
    if (!done) {
      return failure(BITRAIL_ERR_TIMEOUT,
                     "the resolver did not answer for host '{}' in time (BITRAIL_TIMEOUT_MS)",
                     host);
    }
    if (lookup->error != 0) {
      return failure(BITRAIL_ERR_CONFIG, "host '{}' of the rendezvous cannot be resolved: {}", host,
                     gai_strerror(lookup->error));
    }
    *addresses = lookup->found;
  }
  for (Address& address : *addresses) set_port(&address, port);
  return {};
}

Status address_of_interface(const std::string& interface, Address* address) {
  std::vector<Interface> found;
  BITRAIL_TRY(interfaces(&found));
  std::string names;
  for (const Interface& entry : found) {
    if (entry.name == interface || host_text(entry.address) == interface) {
      *address = entry.address;
      return {};
    }
    names +=
        fmt::format("{}{} ({})", names.empty() ? "" : ", ", entry.name, host_text(entry.address));
  }
  return failure(BITRAIL_ERR_CONFIG,
                 "BITRAIL_INTERFACE='{}' is neither an interface that is up nor an address of this "
                 "host; there are: {}",
                 interface, names);
}

Status offered_addresses(uint16_t port, std::vector<Address>* addresses) {
  std::vector<Interface> found;
  BITRAIL_TRY(interfaces(&found));
  for (const bool loopback : {false, true}) {
    for (const Interface& entry : found) {
      if (entry.loopback == loopback) addresses->push_back(entry.address);
    }
    if (!addresses->empty()) break;
  }
  for (Address& address : *addresses) set_port(&address, port);
  if (addresses->empty()) {
    return failure(BITRAIL_ERR_SYSTEM, "no network interface of this host is up");
  }
  return {};
}

Address local_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (getsockname(fd, address.raw(), &address.length) != 0) address.length = 0;
  return address;
}

Address peer_address(int fd) {
  Address address;
  address.length = sizeof address.storage;
  if (getpeername(fd, address.raw(), &address.length) != 0) address.length = 0;
  return address;
}

}  // namespace bitrail::bootstrap
