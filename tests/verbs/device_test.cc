// Opening ports: which, in what order, with what, and why not.
#include "runtime/transport/verbs/device.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "runtime/transport/verbs/properties.h"
#include "tests/support/fake_verbs.h"

namespace bitrail::transport::verbs {
namespace {

using test::Call;
using test::fake_gid;
using test::FakeDevice;
using test::FakePort;
using Ports = std::vector<std::shared_ptr<Port>>;

FakeDevice device(const std::string& name, const std::string& pci = "") {
  FakeDevice made;
  made.name = name;
  made.pci_path = pci;
  return made;
}

class Devices : public testing::Test {
 protected:
  ~Devices() override {
    ports.clear();
    EXPECT_TRUE(fake.counters().clean());
  }
  std::string open(const IbOptions& options = {}) {
    const Status status = open_ports(options, &ports, &why);
    EXPECT_TRUE(status.ok()) << status.text();
    std::string names;
    for (const auto& port : ports) names += (names.empty() ? "" : " ") + port->name;
    return names;
  }
  bool said(const std::string& part) const { return why.find(part) != std::string::npos; }

  test::FakeVerbs fake;
  Ports ports;
  std::string why;
};

TEST_F(Devices, NoneIsSaidSo) {
  EXPECT_EQ(open(), "");
  EXPECT_TRUE(said("no RDMA device")) << why;
}

TEST_F(Devices, ComeInPciOrder) {
  fake.add_device(device("mlx5_10", "/sys/devices/pci0000:3a/0000:3b:00.1"));
  fake.add_device(device("rxe10"));
  fake.add_device(device("mlx5_2", "/sys/devices/pci0000:5d/0000:5e:00.0"));
  fake.add_device(device("rxe9"));
  fake.add_device(device("mlx5_0", "/sys/devices/pci0000:3a/0000:3b:00.0"));
  fake.add_device(device("mlx5_3", "/sys/devices/pci0001:00/0001:00:00.0"));
  EXPECT_EQ(open(), "mlx5_0:1 mlx5_10:1 mlx5_2:1 mlx5_3:1 rxe9:1 rxe10:1");
}

TEST_F(Devices, FortyAreNoProblem) {
  for (int i = 0; i < 40; i++) {
    fake.add_device(device(fmt::format("mlx5_{}", i), fmt::format("/sys/0000:{:02x}:00.0", i)));
  }
  open();
  ASSERT_EQ(ports.size(), 40U);
  EXPECT_EQ(ports[39]->name, "mlx5_39:1");
  IbOptions options;
  options.hca = "=mlx5_1";
  EXPECT_EQ(open(options), "mlx5_1:1");
  options.hca = "mlx5_1";
  open(options);
  EXPECT_EQ(ports.size(), 11U);
  options.hca = "^mlx5_1,mlx5_2,mlx5_3";
  EXPECT_EQ(open(options), "mlx5_0:1 mlx5_4:1 mlx5_5:1 mlx5_6:1 mlx5_7:1 mlx5_8:1 mlx5_9:1");
  EXPECT_TRUE(said("mlx5_17 is not in BITRAIL_IB_HCA")) << why;
}

TEST_F(Devices, BothPortsOfACardShareGuidNotPort) {
  FakeDevice two = device("mlx5_0", "/sys/0000:3b:00.0");
  two.ports.resize(2);
  two.guid = 0x1234;
  fake.add_device(two);
  EXPECT_EQ(open(), "mlx5_0:1 mlx5_0:2");
  EXPECT_EQ(ports[0]->properties.guid, 0x1234U);
  EXPECT_EQ(ports[1]->properties.guid, 0x1234U);
  EXPECT_EQ(ports[0]->properties.port, 1);
  EXPECT_EQ(ports[1]->properties.port, 2);
  IbOptions options;
  options.hca = "mlx5_0:2";
  EXPECT_EQ(open(options), "mlx5_0:2");
  EXPECT_TRUE(said("mlx5_0:1 is not in")) << why;
}

TEST_F(Devices, EachRefusalHasItsReason) {
  FakeDevice each = device("a_down");
  each.ports[0].state = IBV_PORT_DOWN;
  fake.add_device(each);
  each = device("b_init");
  each.ports[0].state = IBV_PORT_INIT;
  fake.add_device(each);
  each = device("c_local");
  each.ports[0].gids = {fake_gid("fe80::1")};
  fake.add_device(each);
  each = device("d_nokey");
  each.ports[0].pkeys = {0};
  fake.add_device(each);
  each = device("e_good");
  fake.add_device(each);
  EXPECT_EQ(open(), "e_good:1");
  for (const char* reason : {"a_down:1 is down", "b_init:1 is initializing", "c_local:1 has no GID",
                             "d_nokey:1 has no partition key", "link-local"}) {
    EXPECT_TRUE(said(reason)) << why;
  }
}

TEST_F(Devices, CallsThatFailAreReasonsToo) {
  const struct {
    Call call;
    int error;
    const char* text;
  } cases[] = {{Call::open_device, EACCES, "ibv_open_device"},
               {Call::query_device, EIO, "ibv_query_device"},
               {Call::query_port, ENODEV, "ibv_query_port"},
               {Call::query_gid, EIO, "ibv_query_gid"},
               {Call::alloc_pd, ENOMEM, "ibv_alloc_pd"}};
  fake.add_device(device("mlx5_0"));
  fake.add_device(device("mlx5_1"));
  for (const auto& c : cases) {
    fake.fail(c.call, c.error);
    EXPECT_EQ(open(), "mlx5_1:1") << c.text;
    EXPECT_TRUE(said("mlx5_0:1: ") && said(c.text)) << why;
  }
}

TEST_F(Devices, ContainersSysfsIsTolerated) {
  FakeDevice each = device("mlx5_0");
  test::FakeGid foreign = fake_gid("10.9.0.1");
  foreign.error = EINVAL;
  each.ports[0].gids = {foreign, fake_gid("10.0.0.7")};
  fake.add_device(each);
  EXPECT_EQ(open(), "mlx5_0:1");
  EXPECT_EQ(ports[0]->gid_index, 1);
}

TEST_F(Devices, OptionsOfNoSenseFail) {
  fake.add_device(device("mlx5_0"));
  IbOptions options;
  options.hca = "mlx5_0:x";
  EXPECT_EQ(open_ports(options, &ports, &why).code(), BITRAIL_ERR_CONFIG);
  options.hca = "";
  options.address_range = "10.0.0.0";
  EXPECT_EQ(open_ports(options, &ports, &why).code(), BITRAIL_ERR_CONFIG);
}

TEST_F(Devices, PropertiesTellThePort) {
  FakeDevice ib = device("mlx5_0", "/sys/0000:3b:00.0");
  ib.ports[0].roce = false;
  ib.ports[0].speed = 64;  // HDR, 4 lanes
  fake.add_device(ib);
  fake.add_device(device("mlx5_1", "/sys/0000:3b:00.1"));
  open();
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0]->properties.speed_mbps, 200'000);
  EXPECT_FALSE(ports[0]->roce);
  EXPECT_TRUE(ports[0]->adaptive_routing);
  EXPECT_TRUE(ports[0]->dmabuf);
  EXPECT_EQ(ports[0]->properties.pci_path, "/sys/0000:3b:00.0");
  EXPECT_NE(ports[0]->properties.guid, ports[1]->properties.guid);
  EXPECT_EQ(ports[1]->properties.speed_mbps, 100'000);
  EXPECT_TRUE(ports[1]->roce);
  EXPECT_FALSE(ports[1]->adaptive_routing);
  EXPECT_EQ(ports[1]->properties.memory_types & kHost, kHost);
  EXPECT_GT(ports[1]->properties.max_message_bytes, 0U);
  IbOptions options;
  options.adaptive_routing = "on";
  open(options);
  EXPECT_TRUE(ports[1]->adaptive_routing);
  options.adaptive_routing = "off";
  open(options);
  EXPECT_FALSE(ports[0]->adaptive_routing);
}

TEST(Speed, IsLanesTimesSpeed) {
  EXPECT_EQ(port_speed_mbps(1, 1), 2500);
  EXPECT_EQ(port_speed_mbps(2, 4), 40'000);
  EXPECT_EQ(port_speed_mbps(2, 16), 56'250);
  EXPECT_EQ(port_speed_mbps(2, 128), 400'000);
  EXPECT_EQ(port_speed_mbps(16, 64), 100'000);
  EXPECT_EQ(port_speed_mbps(3, 3), 0);
}

TEST_F(Devices, LimitsAreTheDevices) {
  FakeDevice small = device("irdma0");
  small.max_rd_atomic = 1;
  small.max_qp_wr = 128;
  small.max_cqe = 512;
  small.ports[0].mtu = IBV_MTU_1024;
  fake.add_device(small);
  open();
  ASSERT_EQ(ports.size(), 1U);
  const Port& port = *ports[0];
  EXPECT_EQ(clamp_mtu(port, IBV_MTU_4096), IBV_MTU_1024);
  EXPECT_EQ(clamp_mtu(port, IBV_MTU_512), IBV_MTU_512);
  EXPECT_EQ(clamp_reads(port, 16), 1);
  EXPECT_EQ(clamp_reads(port, 0), 0);
  EXPECT_EQ(clamp_depth(port, 4096), 128U);
  EXPECT_EQ(clamp_depth(port, 64), 64U);
  EXPECT_EQ(clamp_completions(port, 1U << 20), 512);
  EXPECT_EQ(clamp_completions(port, 0), 1);
}

TEST_F(Devices, RefreshReadsTheAddressAgain) {
  fake.add_device(device("mlx5_0"));
  open();
  ASSERT_EQ(ports.size(), 1U);
  EXPECT_EQ(gid_text(ports[0]->gid), "10.0.0.1");
  fake.set_gids("mlx5_0", 1, {fake_gid("fe80::1"), fake_gid("10.7.7.7")});
  ports[0]->gid_changed = true;
  ASSERT_TRUE(refresh_port({}, ports[0].get()).ok());
  EXPECT_FALSE(ports[0]->gid_changed);
  EXPECT_EQ(gid_text(ports[0]->gid), "10.7.7.7");
  EXPECT_EQ(ports[0]->gid_index, 1);

  fake.set_state("mlx5_0", 1, IBV_PORT_DOWN);
  Status status = refresh_port({}, ports[0].get());
  EXPECT_EQ(status.text(), "mlx5_0:1 is down");
  EXPECT_TRUE(ports[0]->gid_changed);  // so that it is tried again
  fake.set_state("mlx5_0", 1, IBV_PORT_ACTIVE);
  EXPECT_TRUE(refresh_port({}, ports[0].get()).ok());
  ports[0]->removed = true;
  EXPECT_FALSE(refresh_port({}, ports[0].get()).ok());
}

TEST_F(Devices, DescribedOneALine) {
  fake.add_device(device("mlx5_0"));
  FakeDevice down = device("mlx5_1");
  down.ports[0].state = IBV_PORT_DOWN;
  fake.add_device(down);
  const std::vector<std::string> lines = describe_ports({});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0], "mlx5_0:1 active, 100 Gbit/s RoCE, GID 3 10.0.0.1");
  EXPECT_EQ(lines[1], "mlx5_1:1 is down");
}

TEST_F(Devices, ForkIsPreparedOnceBeforeAnything) {
  fake.add_device(device("mlx5_0"));
  open();
  open();
  EXPECT_EQ(fake.counters().calls[static_cast<int>(Call::fork_init)], 1U);
}

}  // namespace
}  // namespace bitrail::transport::verbs
