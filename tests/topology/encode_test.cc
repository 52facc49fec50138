// Machines in bytes: back and forth, alike machines alike, wrong bytes refused.
#include "runtime/topology/encode.h"

#include <gtest/gtest.h>

#include "runtime/topology/check.h"
#include "runtime/topology/description.h"
#include "runtime/topology/paths.h"

namespace bitrail::topology {
namespace {

Machine machine_of(const std::string& text) {
  Cluster cluster;
  const Status status = read_description(text, "d", &cluster);
  EXPECT_TRUE(status.ok()) << status.text();
  return cluster.kinds[0];
}

const char* const kDgx = "gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G pcie=5 c2c_gbs=3.5";

TEST(Encode, MachinesComeBackWithTheirRoutes) {
  const Machine before = machine_of(kDgx);
  const std::vector<uint8_t> bytes = encode(before);
  EXPECT_LT(bytes.size(), 2000U);
  Machine after;
  const Status status = decode(bytes, "rank 3", &after);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(encode(after), bytes);
  EXPECT_EQ(hash(after), hash(before));
  const Routes want = find_routes(before), got = find_routes(after);
  for (size_t i = 0; i < want.out.size(); i++) {
    EXPECT_EQ(got.out[i].path, want.out[i].path);
    EXPECT_EQ(got.out[i].via, want.out[i].via);
    EXPECT_NEAR(got.out[i].bandwidth, want.out[i].bandwidth, 1e-3);
  }
}

TEST(Encode, HashesTellKindsApartAndNotNodes) {
  Machine one = machine_of(kDgx), other = one;
  other.name = "another host";
  other.notes.emplace_back("a note");
  other.gpus[0].rank = 8;
  other.ports[0].guid = 77;
  EXPECT_EQ(hash(one), hash(other));
  other.ports[0].mbps = 200'000;
  EXPECT_NE(hash(one), hash(other));
  EXPECT_NE(hash(one), hash(machine_of("gpus=8 nics=8")));
}

TEST(Encode, WrongBytesAreRefusedNamingTheSender) {
  const std::vector<uint8_t> bytes = encode(machine_of(kDgx));
  Machine machine;
  for (size_t size = 0; size < bytes.size(); size++) {
    const Status status = decode(std::span(bytes).first(size), "rank 3", &machine);
    ASSERT_EQ(status.code(), BITRAIL_ERR_PROTOCOL) << size;
    ASSERT_NE(status.text().find("rank 3"), std::string::npos);
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_FALSE(decode(longer, "rank 3", &machine).ok());
  std::vector<uint8_t> many = bytes;
  many[4] = many[5] = many[6] = many[7] = 0xff;  // four thousand million NUMA nodes
  EXPECT_FALSE(decode(many, "rank 3", &machine).ok());
}

TEST(Encode, FlippedBitsYieldAConsistentMachineOrNone) {
  const std::vector<uint8_t> bytes = encode(machine_of("gpus=2 nvlink=4 nics=1 nic=1G"));
  size_t refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
    std::vector<uint8_t> wrong = bytes;
    wrong[bit / 8] ^= static_cast<uint8_t>(1U << (bit % 8));
    Machine machine;
    if (decode(wrong, "rank 3", &machine).ok()) {
      EXPECT_TRUE(check(machine, "").ok());
    } else {
      refused++;
    }
  }
  EXPECT_GT(refused, bytes.size());
}

}  // namespace
}  // namespace bitrail::topology
