// hwloc: this machine, and XML that its importer must not see.
#include <gtest/gtest.h>

#include "runtime/topology/check.h"
#include "runtime/topology/live.h"
#include "runtime/topology/read.h"

namespace bitrail::topology {
namespace {

constexpr const char* kSmall = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">
    <object type="NUMANode" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x1" complete_nodeset="0x1" gp_index="2" local_memory="1048576"/>
    <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3"/>
    <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
    <object type="Bridge" gp_index="5" bridge_type="0-1" depth="0" bridge_pci="0000:[00-01]">
      <object type="PCIDev" gp_index="6" pci_busid="0000:01:00.0" pci_type="0302 [10de:1db8] [10de:131d] a1" pci_link_speed="15.75"/>
      <object type="PCIDev" gp_index="7" pci_busid="0000:00:03.0" pci_type="0200 [15b3:1017] [15b3:0001] 00" pci_link_speed="15.75">
        <object type="OSDev" gp_index="8" name="mlx5_0" osdev_type="3"/>
        <object type="OSDev" gp_index="9" name="eth0" osdev_type="2"/>
      </object>
    </object>
  </object>
</topology>
)";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(Hwloc, SmallMachineIsRead) {
  Cluster cluster;
  const Status status = read_text(kSmall, "h.xml", &cluster);
  ASSERT_TRUE(status.ok()) << status.text();
  const Machine& m = cluster.kinds[0];
  ASSERT_EQ(m.gpus.size(), 1U);
  EXPECT_EQ(m.gpus[0].name, "0000:01:00.0");
  ASSERT_EQ(m.ports.size(), 1U) << "the Ethernet face of an RDMA card is no port of its own";
  EXPECT_EQ(m.ports[0].name, "mlx5_0");
  EXPECT_NEAR(m.pci[0].bandwidth, 12, 0.1);
}

TEST(Hwloc, WrongFilesAreRefusedWithLineAndAttribute) {
  struct Case {
    const char *what, *by, *says;
  };
  for (const Case& c : {
           Case{"version=\"2.0\"", "version=\"3.0\"", "h.xml:3: <topology>: version=\"3.0\""},
           Case{"version=\"2.0\"", "", "has no version"},
           Case{"type=\"Machine\"", "type=\"PU\"", "outermost object has to be the Machine"},
           Case{"type=\"Bridge\"", "type=\"Machine\"", "a machine in a machine"},
           Case{"type=\"Bridge\"", "", "h.xml:8: <object>: has no type"},
           Case{"os_index=\"1\"", "os_index=\"4294967295\"",
                "h.xml:7: <object type=\"PU\">: os_index"},
           Case{"gp_index=\"3\"", "gp_index=\"x\"", "gp_index=\"x\""},
           Case{"osdev_type=\"3\"", "osdev_type=\"77\"", "osdev_type=\"77\""},
           Case{"cpuset=\"0x1\"", "cpuset=\"zzz\"", "cpuset=\"zzz\" is no set of processors"},
           Case{"SYSTEM \"hwloc2.dtd\"", "[<!ENTITY a \"b\">]", "h.xml:2: defines entities"},
           Case{"</topology>", "", "h.xml:"},
       }) {
    Cluster cluster;
    const Status status = read_text(replaced(kSmall, c.what, c.by), "h.xml", &cluster);
    EXPECT_FALSE(status.ok()) << c.by;
    EXPECT_NE(status.text().find(c.says), std::string::npos) << status.text() << "\nshould say\n"
                                                             << c.says;
  }
  Cluster cluster;
  EXPECT_FALSE(read_text("<topology version=\"2.0\"/>", "h.xml", &cluster).ok());
}

// The plugin of hwloc that looks at PCI unloads a library which keeps its tables: the leak detector
// then finds them without a name to suppress them by.
#ifndef __SANITIZE_ADDRESS__
TEST(Hwloc, ThisMachineIsConsistent) {
  Machine machine;
  const Status status = read_live(&machine);
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(check(machine, "here").ok());
  EXPECT_FALSE(machine.numas.empty());
  EXPECT_FALSE(machine.name.empty());
}
#endif

}  // namespace
}  // namespace bitrail::topology
