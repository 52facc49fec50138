// Which GID a port gets, for tables as users have them.
#include "runtime/transport/verbs/gid.h"

#include <gtest/gtest.h>

#include "tests/support/fake_verbs.h"

namespace bitrail::transport::verbs {
namespace {

GidEntry entry(int index, const std::string& address, int version) {
  return {index, test::fake_gid(address).gid, version};
}

// As a ConnectX port shows them: link-local, IPv4 and a global IPv6, each in both versions.
std::vector<GidEntry> usual() {
  return {entry(0, "fe80::1", 1),  entry(1, "fe80::1", 2),     entry(2, "10.1.0.5", 1),
          entry(3, "10.1.0.5", 2), entry(4, "2001:db8::5", 1), entry(5, "2001:db8::5", 2),
          entry(8, "10.2.0.5", 2)};
}

int choose(const IbOptions& options, const std::vector<GidEntry>& entries = usual()) {
  GidEntry chosen;
  const Status status = choose_gid("mlx5_0:1", true, entries, options, &chosen);
  return status.ok() ? chosen.index : -1;
}

TEST(Gid, PrefersFamilyThenVersionThenTheFirst) {
  IbOptions options;
  EXPECT_EQ(choose(options), 3);
  options.roce_version = 1;
  EXPECT_EQ(choose(options), 2);
  options.address_family = "ipv6";
  EXPECT_EQ(choose(options), 4);
  options.roce_version = 2;
  EXPECT_EQ(choose(options), 5);
  options.address_family = "ipv4";
  // Only the other family, or the other version, is better than nothing.
  EXPECT_EQ(choose(options, {entry(0, "fe80::1", 2), entry(2, "2001:db8::5", 2)}), 2);
  EXPECT_EQ(choose(options, {entry(1, "2001:db8::5", 2), entry(2, "10.1.0.5", 1)}), 2);
}

TEST(Gid, SkipsLinkLocalZeroAndUnknown) {
  EXPECT_EQ(choose({}, {entry(0, "fe80::1", 2), entry(1, "169.254.3.4", 2), entry(2, "::", 2),
                        entry(3, "10.0.0.1", 0)}),
            -1);
  EXPECT_EQ(choose({}, {entry(0, "10.0.0.1", 0), entry(1, "10.0.0.2", 1)}), 1);
}

TEST(Gid, RangeHasToMatch) {
  IbOptions options;
  options.address_range = "10.2.0.0/16";
  EXPECT_EQ(choose(options), 8);
  options.address_range = "2001:db8::/32";  // over the preferred family
  EXPECT_EQ(choose(options), 5);
  options.address_range = "10.0.0.0/8";
  EXPECT_EQ(choose(options), 3);
  options.address_range = "0.0.0.0/0";
  EXPECT_EQ(choose(options), 3);
  options.address_range = "192.168.0.0/16";
  EXPECT_EQ(choose(options), -1);
  options.address_range = "10.1.0.4/31";
  EXPECT_EQ(choose(options), 3);
  options.address_range = "10.1.0.6/31";
  EXPECT_EQ(choose(options), -1);
}

TEST(Gid, FixedIndexIsTakenAsItIs) {
  IbOptions options;
  options.address_range = "192.168.0.0/16";
  options.gid_index = 0;
  EXPECT_EQ(choose(options), 0);
  options.gid_index = 8;
  EXPECT_EQ(choose(options), 8);
  options.gid_index = 7;
  GidEntry chosen;
  const Status status = choose_gid("mlx5_0:1", true, usual(), options, &chosen);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  for (const char* part : {"mlx5_0:1", "index 7", "BITRAIL_IB_GID_INDEX", "10.1.0.5 at 3"}) {
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
}

TEST(Gid, FailureSaysWhatThereWas) {
  GidEntry chosen;
  Status status =
      choose_gid("mlx5_0:1", true, {entry(0, "fe80::1", 2), entry(3, "10.0.0.1", 0)}, {}, &chosen);
  for (const char* part :
       {"mlx5_0:1", "fe80::1 at 0 (link-local)", "10.0.0.1 at 3 (of another network namespace)"}) {
    EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
  status = choose_gid("mlx5_0:1", true, {}, {}, &chosen);
  EXPECT_NE(status.text().find("empty table"), std::string::npos) << status.text();
}

TEST(Gid, InfiniBandTakesItsFirst) {
  GidEntry chosen;
  const std::vector<GidEntry> table = {entry(0, "fe80::2:c903:0:1", 1), entry(1, "fec0::1", 1)};
  EXPECT_TRUE(choose_gid("mlx5_0:1", false, table, {}, &chosen).ok());
  EXPECT_EQ(chosen.index, 0);
  EXPECT_FALSE(choose_gid("mlx5_0:1", false, {}, {}, &chosen).ok());
}

TEST(Gid, RefusesWhatIsNoRange) {
  for (const char* text : {"10.0.0.0", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "::/129",
                           "10.0.0/8", "10.0.0.0/8x", "10.0.0.0/ 8", "host/8", "1.2.3.4/8/8"}) {
    AddressRange range;
    const Status status = parse_range(text, &range);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << text;
    EXPECT_NE(status.text().find("BITRAIL_IB_ADDRESS_RANGE"), std::string::npos) << text;
    IbOptions options;
    options.address_range = text;
    EXPECT_EQ(choose(options), -1);
  }
}

TEST(Gid, TextIsTheAddress) {
  EXPECT_EQ(gid_text(test::fake_gid("10.0.0.1").gid), "10.0.0.1");
  EXPECT_EQ(gid_text(test::fake_gid("fe80::1").gid), "fe80::1");
}

}  // namespace
}  // namespace bitrail::transport::verbs
