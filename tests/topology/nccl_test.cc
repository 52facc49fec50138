// NCCL's XML: what a reader makes of small machines, and what it says about wrong ones.
#include <gtest/gtest.h>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "runtime/topology/read.h"
#include "tests/topology/machines.h"

namespace bitrail::topology {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

std::string error_of(const std::string& text) {
  Cluster cluster;
  const Status status = read_text(text, "t.xml", &cluster);
  EXPECT_FALSE(status.ok()) << text;
  return status.text();
}

Machine machine_of(const std::string& text) {
  Cluster cluster;
  const Status status = read_text(text, "t.xml", &cluster);
  EXPECT_TRUE(status.ok()) << status.text();
  return status.ok() ? cluster.kinds[0] : Machine{};
}

TEST(Nccl, RoutesUseNvLinkAndHelpers) {
  const Machine m = machine_of(three_gpus());
  const Routes routes = find_routes(m);
  EXPECT_EQ(routes.to_gpu(0, 0).path, Path::loc);
  EXPECT_EQ(routes.to_gpu(0, 2).path, Path::nvl);
  EXPECT_DOUBLE_EQ(routes.to_gpu(0, 2).bandwidth, 40);
  // NVB is nearer than PIX, and as wide as its narrower half.
  EXPECT_EQ(routes.to_gpu(0, 1).path, Path::nvb);
  EXPECT_EQ(routes.to_gpu(0, 1).via, 2);
  EXPECT_DOUBLE_EQ(routes.to_gpu(0, 1).bandwidth, 20);
  EXPECT_EQ(routes.to_port(0, 0).path, Path::pix);
  EXPECT_DOUBLE_EQ(routes.to_port(0, 0).bandwidth, 12);
  // The GPU of the other node sends through the one with the wider NVLink.
  EXPECT_EQ(routes.to_port(2, 0).path, Path::pxn);
  EXPECT_EQ(routes.to_port(2, 0).via, 0);
  EXPECT_DOUBLE_EQ(routes.to_port(2, 0).bandwidth, 12);
  EXPECT_EQ(nearest_ports(m, place(m, m.gpus[2])).path, Path::sys);
  EXPECT_EQ(deal_ports(m), (std::vector<std::vector<int>>{{0}, {0}, {0}}));
}

TEST(Nccl, SocketsLimitBandwidth) {
  const Machine m = machine_of(three_gpus());
  const Route route = pci_route(m, place(m, m.gpus[0]), place(m, m.gpus[2]));
  EXPECT_EQ(route.path, Path::sys);
  EXPECT_DOUBLE_EQ(route.bandwidth, 10);
}

TEST(Nccl, HostsOfOneFileAreNodesOfOneNvLinkDomain) {
  Cluster cluster;
  const Status status = read_text(two_trays(), "t.xml", &cluster);
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_EQ(cluster.nodes, (std::vector<int>{0, 1}));
  EXPECT_TRUE(cluster.one_nvlink_domain);
  EXPECT_EQ(between_nodes(cluster), Path::nvl);
  // A wide C2C and the card's own link beat the GPU's narrow PCI link.
  const Route route = find_routes(cluster.kinds[0]).to_port(0, 0);
  EXPECT_EQ(route.path, Path::p2c);
  EXPECT_DOUBLE_EQ(route.bandwidth, 25);
}

TEST(Nccl, OneLaneSwitchesAreAsWideAsTheirDevices) {
  const Machine m = machine_of(replaced(
      three_gpus(),
      "\"0000:10:00.0\" class=\"0x060400\" link_speed=\"8.0 GT/s PCIe\" link_width=\"16\"",
      "\"0000:10:00.0\" class=\"0x060400\" link_speed=\"2.5 GT/s PCIe\" link_width=\"1\""));
  EXPECT_DOUBLE_EQ(m.pci[0].bandwidth, 12);
}

TEST(Nccl, OddThingsAreNoted) {
  struct Case {
    std::string text, note;
  };
  const std::string good = three_gpus();
  const std::string nic =
      "<nic><net name=\"mlx5_0\" speed=\"100000\" port=\"1\" guid=\"0x1\"/></nic>";
  for (const Case& c : {
           Case{replaced(replaced(good, nic, ""), "0x020000", "0x0c0330"),
                "line 14: PCI device 0000:13:00.0 is of class 0x0c0330"},
           Case{replaced(replaced(good, nic, ""), " class=\"0x020000\"", ""),
                "line 14: PCI device 0000:13:00.0 has no class"},
           Case{replaced(replaced(good, nic, ""), "0x020000", "0x0c0330"),
                "no network port is known"},
           Case{replaced(good, "</cpu>", nic.substr(0, 16) + "eth0\"/></nic></cpu>"),
                "port eth0 has no PCI device"},
           Case{replaced(good, "target=\"0000:81:00.0\" count=\"2\"",
                         "target=\"0000:11:00.0\" count=\"2\""),
                "line 6: nvlink of gpu0 leads to 0000:11:00.0, which is the GPU itself"},
           Case{replaced(good, "target=\"0000:81:00.0\" count=\"2\"",
                         "target=\"0000:99:00.0\" count=\"2\""),
                "which is no GPU of this file"},
           Case{replaced(good, "count=\"2\"", "count=\"4\""),
                "gpu0 lists 4 NVLinks to gpu2, which lists 2 back"},
           Case{replaced(good, "</cpu>", "<dragon/></cpu>"), "<dragon> in a <cpu> is not known"},
       }) {
    const Machine m = machine_of(c.text);
    std::string notes;
    for (const std::string& note : m.notes) notes += note + "\n";
    EXPECT_NE(notes.find(c.note), std::string::npos) << c.note << "\nin\n" << notes;
  }
}

TEST(Nccl, WrongFilesAreRefusedWithLineAndAttribute) {
  struct Case {
    std::string what, by, says;
  };
  for (const Case& c : {
           Case{"version=\"1\"", "version=\"9\"", "t.xml:1: <system>: version=\"9\""},
           Case{"numaid=\"0\"", "numaid=\"x\"",
                "t.xml:2: <cpu numaid=\"x\">: numaid=\"x\" is no whole"},
           Case{"numaid=\"0\"", "", "t.xml:2: <cpu>: has no numaid"},
           Case{"numaid=\"1\"", "numaid=\"0\"", "t.xml:19: <cpu numaid=\"0\">: another <cpu>"},
           Case{"numaid=\"1\"", "numaid=\"1\" host_hash=\"0x1\"", "some <cpu> have a host_hash"},
           Case{"busid=\"0000:11:00.0\"", "busid=\"eleven\"",
                "t.xml:4: <pci busid=\"eleven\">: busid=\"eleven\" is not a PCI address"},
           Case{"busid=\"0000:11:00.0\"", "", "t.xml:4: <pci>: has no busid"},
           Case{"busid=\"0000:12:00.0\"", "busid=\"0000:11:00.0\"",
                "line 4 has this device already"},
           Case{"class=\"0x030200\"", "class=\"gpu\"", "class=\"gpu\" is not a PCI class"},
           Case{"link_speed=\"8.0 GT/s PCIe\"", "link_speed=\"fast\"",
                "t.xml:3: <pci busid=\"0000:10:00.0\">: link_speed=\"fast\" is not"},
           Case{"link_speed=\"8.0 GT/s PCIe\"", "link_speed=\"9 GT/s\"", "a speed that PCI has"},
           Case{"link_width=\"16\"", "link_width=\"-1\"", "link_width=\"-1\" is no whole number"},
           Case{"rank=\"1\"", "rank=\"0\"", "another GPU is this one or has its rank 0"},
           Case{"dev=\"1\"", "dev=\"0\"", "another GPU is this one"},
           Case{"count=\"2\"", "count=\"0\"",
                "t.xml:6: <nvlink target=\"0000:81:00.0\">: count=\"0\""},
           Case{"target=\"0000:81:00.0\"", "target=\"\"", "has no target"},
           Case{"tclass=\"0x030200\"", "tclass=\"7\"", "tclass=\"7\" is not a PCI class"},
           Case{"speed=\"100000\"", "speed=\"nan\"", "speed=\"nan\" is not a number"},
           Case{"speed=\"100000\"", "speed=\"-5\"", "speed=\"-5\" is not a number"},
           Case{"name=\"mlx5_0\"", "", "has no name"},
           Case{"name=\"mlx5_0\"", "name=\"a&#27;[2J\"", "has control characters"},
           Case{"guid=\"0x1\"", "guid=\"0xfffffffffffffffff\"",
                "guid=\"0xfffffffffffffffff\" is no number"},
           Case{"<nic>", "<nic><net name=\"mlx5_0\"/>", "another net has this name"},
           Case{"<gpu dev=\"0\"", "<nic/><gpu dev=\"0\"", "is a GPU and holds a <nic>"},
           Case{"</system>", "<nic/></system>", "t.xml:27: <nic>: stands in no <cpu>"},
           Case{"</system>", "", "t.xml:27: "},
           Case{"</system>", "</system><system/>", "a second <system>"},
           Case{"<system version=\"1\">", "<cluster version=\"1\">", "t.xml:"},
           Case{"<system", "<!DOCTYPE s [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]><system",
                "defines entities"},
       }) {
    const std::string text = error_of(replaced(three_gpus(), c.what, c.by));
    EXPECT_NE(text.find(c.says), std::string::npos) << text << "\nshould say\n" << c.says;
  }
  EXPECT_NE(error_of("<cluster/>").find("neither NCCL's XML"), std::string::npos);
  EXPECT_NE(error_of("<system version=\"1\"/>").find("no machine"), std::string::npos);
}

TEST(Nccl, TruncatedFilesAreRefused) {
  const std::string good = three_gpus();
  for (size_t size = 0; size + 9 < good.size(); size += 7) error_of(good.substr(0, size));
}

TEST(Nccl, HostileSizesAreRefused) {
  std::string deep = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 1'000'000; i++) deep += "<pci>";
  EXPECT_NE(error_of(deep).find("t.xml:1"), std::string::npos);
  std::string closed = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 500; i++) closed += "<pci busid=\"0000:00:00.0\">\n";
  for (int i = 0; i < 500; i++) closed += "</pci>";
  EXPECT_NE(error_of(closed + "</cpu></system>").find("nested more than"), std::string::npos);
  std::string wide = "<system version=\"1\"><cpu numaid=\"0\">";
  for (int i = 0; i < 210'000; i++) wide += "<pci/>";
  EXPECT_NE(error_of(wide + "</cpu></system>").find("elements"), std::string::npos);
  EXPECT_NE(error_of("<system>" + std::string(17 << 20, ' ')).find("larger than"),
            std::string::npos);
  EXPECT_NE(error_of(std::string("<system>\n\0", 10)).find("t.xml:2: a zero byte"),
            std::string::npos);
}

TEST(Read, FilesThatAreNoneAreNamed) {
  Cluster cluster;
  EXPECT_NE(read_file("/no/such/file", &cluster).text().find("/no/such/file"), std::string::npos);
  EXPECT_NE(read_file("/tmp", &cluster).text().find("is a folder"), std::string::npos);
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
}

TEST(Read, VariablesNameTheFileAndBitrailsWins) {
  const std::string path = testing::TempDir() + "bitrail_topology_test.txt";
  FILE* file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("nodes=3 gpus=2 nics=1 nic=1G\n", file);
  std::fclose(file);
  Cluster cluster;
  std::string origin;
  config::Settings settings;
  setenv("NCCL_TOPO_FILE", "/no/such/file", 1);
  const Status status = read_topology(settings, &cluster, &origin);
  EXPECT_NE(status.text().find("NCCL_TOPO_FILE"), std::string::npos) << status.text();
  settings.topo_file = path;
  ASSERT_TRUE(read_topology(settings, &cluster, &origin).ok());
  EXPECT_EQ(cluster.nodes.size(), 3U);
  EXPECT_NE(origin.find("BITRAIL_TOPO_FILE"), std::string::npos);
  unsetenv("NCCL_TOPO_FILE");
}

}  // namespace
}  // namespace bitrail::topology
