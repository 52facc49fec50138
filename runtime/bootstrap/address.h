// Socket addresses: text to address and back, names, and what this host can offer to its peers.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/common/clock.h"
#include "runtime/common/status.h"

namespace bitrail::bootstrap {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;  // 0: no address

  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

// "10.0.0.1:4000", "[fe80::1]:4000", "?" for none.
std::string to_text(const Address& address);
uint16_t port_of(const Address& address);
void set_port(Address* address, uint16_t port);

// "host:port" or "[v6]:port". `knob` is where the text came from, for messages.
Status split_host_port(const std::string& text, const std::string& knob, std::string* host,
                       uint16_t* port);
// Numeric addresses at once; names by the system's resolver, at most until the deadline.
Status resolve(const std::string& host, uint16_t port, Deadline deadline,
               std::vector<Address>* addresses);

// The address of BITRAIL_INTERFACE: an interface's name (its first address, IPv4 before IPv6) or
// one of this host's addresses.
Status address_of_interface(const std::string& interface, Address* address);
// What peers may reach this host at, with `port`: addresses of all interfaces that are up; loopback
// only if there is no other.
Status offered_addresses(uint16_t port, std::vector<Address>* addresses);

Address local_address(int fd);
Address peer_address(int fd);

}  // namespace bitrail::bootstrap
