// The compact text form.
#include "runtime/topology/description.h"

#include <gtest/gtest.h>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"

namespace bitrail::topology {
namespace {

Cluster cluster_of(const std::string& text) {
  Cluster cluster;
  const Status status = read_description(text, "d", &cluster);
  EXPECT_TRUE(status.ok()) << status.text();
  return cluster;
}

TEST(Description, OneLineIsACluster) {
  const Cluster cluster =
      cluster_of("nodes=32 gpus=8 gpu=h100 nvlink=18 nics=8 nic=400G pcie=5  # DGX\n");
  ASSERT_EQ(cluster.nodes.size(), 32U);
  ASSERT_EQ(cluster.kinds.size(), 1U);
  const Machine& m = cluster.kinds[0];
  ASSERT_EQ(m.gpus.size(), 8U);
  EXPECT_EQ(m.numas.size(), 2U);
  EXPECT_EQ(fast_rails(m).size(), 8U);
  const Routes routes = find_routes(m);
  for (size_t gpu = 0; gpu < 8; gpu++) {
    EXPECT_EQ(routes.to_port(gpu, gpu).path, Path::pix);
    EXPECT_DOUBLE_EQ(routes.to_port(gpu, gpu).bandwidth, 48);
    EXPECT_EQ(routes.to_port(gpu, (gpu + 1) % 8).path, Path::pxn);
    EXPECT_EQ(routes.to_port(gpu, (gpu + 1) % 8).via, static_cast<int>((gpu + 1) % 8));
    EXPECT_EQ(m.pci[static_cast<size_t>(m.gpus[gpu].pci)].numa, gpu < 4 ? 0 : 1);
  }
  const NvPair pair = nvlink_pairs(m)[1];
  EXPECT_EQ(pair.count, 18);
  EXPECT_DOUBLE_EQ(pair.bandwidth, 18 * 20.6);
  EXPECT_EQ(between_nodes(cluster), Path::net);
}

TEST(Description, LinesAreGroupsOfUnevenNodes) {
  const Cluster cluster =
      cluster_of("\n# two kinds\nnodes=2 gpus=4 nics=1 nic=40G\nnodes=1 nics=2\n");
  EXPECT_EQ(cluster.nodes, (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(cluster.kinds[0].gpus.size(), 4U);
  EXPECT_EQ(cluster.kinds[0].ports[0].mbps, 40'000);
  EXPECT_TRUE(cluster.kinds[1].gpus.empty());
  EXPECT_EQ(fast_rails(cluster.kinds[1]).size(), 2U);
}

TEST(Description, PortsAreDealtInShares) {
  // Two GPUs and four NICs behind each of two switches: two NICs for each GPU, each NIC once.
  const Machine m = cluster_of("gpus=4 nics=8 nic=100G switches=2").kinds[0];
  std::vector<int> load(8, 0);
  for (const std::vector<int>& ports : deal_ports(m)) {
    EXPECT_EQ(ports.size(), 2U);
    for (int port : ports) load[static_cast<size_t>(port)]++;
  }
  EXPECT_EQ(load, std::vector<int>(8, 1));
  // Without switches all GPUs of a node tie: one of its NICs each.
  const Machine flat = cluster_of("gpus=4 nics=4 nic=100G switches=0").kinds[0];
  EXPECT_EQ(deal_ports(flat), (std::vector<std::vector<int>>{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(nearest_ports(flat, place(flat, flat.gpus[0])).path, Path::phb);
}

TEST(Description, ExtremesAreSound) {
  const Cluster all = cluster_of(
      "nodes=65536 gpus=64 nics=64 nic=800G switches=64 sockets=64 numa=16 pcie=6 lanes=32 "
      "nvlink=1024 nvlink_gbs=0.5 c2c_gbs=1000 gpu=103 mnnvl=1");
  EXPECT_EQ(between_nodes(all), Path::nvl);
  EXPECT_EQ(cluster_of("nics=0").kinds[0].ports.size(), 0U);
  EXPECT_EQ(cluster_of("gpus=1 nics=0").kinds[0].notes.size(), 1U);
}

TEST(Description, MistakesAreNamedWithLineAndKey) {
  struct Case {
    const char *text, *says;
  };
  for (const Case& c : {
           Case{"gpus=8\nnodes=0", "d:2: nodes=0: has to be a whole number from 1 to 65536"},
           Case{"nodes=1.5", "nodes=1.5"},
           Case{"gpus=65", "gpus=65"},
           Case{"gpus=", "gpus="},
           Case{"gpus", "'gpus' is not KEY=VALUE"},
           Case{"gpu=h900", "gpu=h900"},
           Case{"nic=400", "nic=400: has to be a number from 0 to 1"},
           Case{"nic=G", "nic=G"},
           Case{"nic=-1G", "nic=-1G"},
           Case{"nic=1e999G", "nic=1e999G"},
           Case{"nisc=8", "'nisc' is not known; did you mean nic?"},
           Case{"nodes=65536\nnodes=1", "d:2: more than 65536 nodes"},
           Case{"# nothing\n", "d: no machine in it"},
       }) {
    Cluster cluster;
    const Status status = read_description(c.text, "d", &cluster);
    EXPECT_FALSE(status.ok()) << c.text;
    EXPECT_NE(status.text().find(c.says), std::string::npos) << status.text() << "\nshould say\n"
                                                             << c.says;
  }
}

}  // namespace
}  // namespace bitrail::topology
