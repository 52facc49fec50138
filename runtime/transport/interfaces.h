// Which of this host's addresses a listener offers, and what is known about the card behind it.
#pragma once

#include <sys/socket.h>

#include "runtime/transport/transport.h"

namespace bitrail::transport {

struct Interface {
  std::string name;            // "eth0"
  sockaddr_storage address{};  // port 0
  bool loopback = false;
};

// `wanted` is an address ("10.0.0.1", "::1") or an interface's name; empty takes the first
// interface that is up and not loopback, or loopback when there is nothing else. IPv4 before IPv6.
Status choose_interface(const std::string& wanted, Interface* chosen);

// Fills pci_path, guid (from the hardware address), speed and NUMA node from sysfs as far as known.
void describe_interface(const Interface& interface, DeviceProperties* properties);

}  // namespace bitrail::transport
