#include "runtime/bootstrap/address.h"

#include <gtest/gtest.h>

#include "tests/bootstrap/join.h"

namespace bitrail::bootstrap {
namespace {

TEST(Address, HostAndPortAreSplit) {
  std::string host;
  uint16_t port = 0;
  ASSERT_TRUE(split_host_port("node0:4000", "K", &host, &port).ok());
  EXPECT_EQ(host, "node0");
  EXPECT_EQ(port, 4000);
  ASSERT_TRUE(split_host_port("[fd00::1]:65535", "K", &host, &port).ok());
  EXPECT_EQ(host, "fd00::1");
  EXPECT_EQ(port, 65535);
}

TEST(Address, WhatIsNoHostAndPortIsRefusedNamingTheKnob) {
  for (const char* text : {"", "node0", ":4000", "node0:", "node0:0", "node0:65536", "node0:-1",
                           "node0:4000x", "[]:5"}) {
    std::string host;
    uint16_t port = 0;
    const Status status = split_host_port(text, "BITRAIL_RENDEZVOUS", &host, &port);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << text;
    EXPECT_NE(status.text().find("BITRAIL_RENDEZVOUS"), std::string::npos);
  }
}

TEST(Address, NumbersResolveToThemselves) {
  for (const char* text : {"127.0.0.1", "::1"}) {
    std::vector<Address> found;
    ASSERT_TRUE(resolve(text, 77, Deadline::in_ms(1000), &found).ok());
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(port_of(found[0]), 77);
    EXPECT_NE(to_text(found[0]).find(text), std::string::npos);
  }
}

TEST(Address, NamesThatCannotBeAreRefused) {
  std::vector<Address> found;
  const Status status = resolve("no such host", 1, Deadline::in_ms(30'000), &found);
  EXPECT_TRUE(status.code() == BITRAIL_ERR_CONFIG || status.code() == BITRAIL_ERR_TIMEOUT);
}

TEST(Address, InterfaceIsFoundByNameAndByAddress) {
  Address by_name, by_address;
  ASSERT_TRUE(address_of_interface("lo", &by_name).ok());
  EXPECT_EQ(to_text(by_name), "127.0.0.1:0");
  ASSERT_TRUE(address_of_interface("127.0.0.1", &by_address).ok());
  const Status status = address_of_interface("nowhere9", &by_name);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("lo (127.0.0.1)"), std::string::npos) << status.text();
}

TEST(Address, SomethingIsOffered) {
  std::vector<Address> offered;
  ASSERT_TRUE(offered_addresses(5, &offered).ok());
  for (const Address& address : offered) EXPECT_EQ(port_of(address), 5);
}

// Waiting for a listener on a loopback port ends in a connection of a socket to itself sooner or
// later; it has to count as refused.
TEST(Socket, NeverConnectsToItself) {
  std::vector<Address> found;
  ASSERT_TRUE(
      resolve("127.0.0.1", static_cast<uint16_t>(test::free_port()), Deadline::in_ms(1000), &found)
          .ok());
  for (int i = 0; i < 40'000; i++) {
    UniqueFd socket;
    ASSERT_FALSE(connect_to(found[0], Deadline::in_ms(1000), &socket).ok()) << "attempt " << i;
  }
}

}  // namespace
}  // namespace bitrail::bootstrap
