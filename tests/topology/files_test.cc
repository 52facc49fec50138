// Real machines: every file of the folders against what expected.json says is in it.
//
// EXPECTED_TOPOLOGIES is the folder in the tree. Files without a stated licence are not in it: they
// are read from TOPOLOGIES, a folder beside the repository, where there is one.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "runtime/topology/read.h"

namespace bitrail::topology {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

struct Case {
  std::string folder;
  json expected;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.expected["file"]; }

std::vector<Case> cases_of(const std::string& folder) {
  std::vector<Case> cases;
  std::ifstream file(folder + "/expected.json");
  if (!file) return cases;
  for (const json& record : json::parse(file)) cases.push_back({folder, record});
  return cases;
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.expected["file"];
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

std::string gpu_id(const Cluster& cluster, size_t node, size_t gpu) {
  const std::string& name = cluster.kinds[static_cast<size_t>(cluster.nodes[node])].gpus[gpu].name;
  return cluster.nodes.size() == 1 ? name : fmt::format("h{}.{}", node, name);
}

Names port_names(const Machine& machine, const std::vector<int>& ports) {
  Names names;
  for (int port : ports) names.push_back(machine.ports[static_cast<size_t>(port)].name);
  return names;
}

Names sorted(Names names) {
  std::ranges::sort(names);
  return names;
}

// hwloc files list all interfaces; the expectations know RDMA ports only.
void drop_plain_ethernet(Machine* machine) {
  std::erase_if(machine->ports, [](const Port& port) { return !port.rdma; });
}

class Files : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::string path = GetParam().folder + "/" + want()["file"].get<std::string>();
    status_ = read_file(path, &cluster_);
    for (Machine& machine : cluster_.kinds) drop_plain_ethernet(&machine);
  }
  const json& want() const { return GetParam().expected; }
  const Machine& machine(size_t node) const {
    return cluster_.kinds[static_cast<size_t>(cluster_.nodes[node])];
  }

  void check_gpu(const Machine& m, size_t gpu, const json& expected) const {
    const Gpu& g = m.gpus[gpu];
    const Pci& pci = m.pci[static_cast<size_t>(g.pci)];
    EXPECT_EQ(pci.busid, expected["busid"]);
    const Numa& numa = m.numas[static_cast<size_t>(pci.numa)];
    EXPECT_EQ(std::to_string(numa.id), expected["numa"]);
    if (expected.contains("package")) {
      EXPECT_EQ(std::to_string(numa.package), expected["package"]);
    }
    if (expected.contains("rank")) {
      EXPECT_EQ(g.rank, expected["rank"]);
    }
    if (expected.contains("c2c_MBps")) {
      EXPECT_DOUBLE_EQ(g.c2c_bandwidth * 1000, expected["c2c_MBps"]);
    }
    if (expected.contains("nvlinks_to_switch")) {
      EXPECT_EQ(switch_links(m, static_cast<int>(gpu)), expected["nvlinks_to_switch"]);
    }
    check_nearest(m, g, expected);
  }

  void check_nearest(const Machine& m, const Gpu& g, const json& expected) const {
    const Nearest nearest = nearest_ports(m, place(m, g));
    EXPECT_EQ(port_names(m, nearest.ports), expected["nearest"].get<Names>());
    if (expected["path"].is_null()) {
      EXPECT_EQ(nearest.path, Path::dis);
      return;
    }
    EXPECT_EQ(name(nearest.path), expected["path"]);
    std::set<int> switches;
    for (int port : nearest.ports)
      switches.insert(
          pci_route(m, place(m, g), place(m.ports[static_cast<size_t>(port)])).switches);
    EXPECT_EQ(switches, expected["switches"].get<std::set<int>>());
    const auto& fast = expected.contains("nearest_and_fastest") ? expected["nearest_and_fastest"]
                                                                : expected["nearest"];
    EXPECT_EQ(port_names(m, fastest(m, nearest.ports)), fast.get<Names>());
  }

  std::map<std::string, Names> pci_paths() const {
    std::map<std::string, Names> paths;
    std::vector<std::pair<size_t, size_t>> all;
    for (size_t node = 0; node < cluster_.nodes.size(); node++)
      for (size_t gpu = 0; gpu < machine(node).gpus.size(); gpu++) all.emplace_back(node, gpu);
    for (size_t a = 0; a < all.size(); a++) {
      for (size_t b = a + 1; b < all.size(); b++) {
        const Machine& m = machine(all[a].first);
        const Path path =
            all[a].first != all[b].first
                ? Path::net
                : pci_route(m, place(m, m.gpus[all[a].second]), place(m, m.gpus[all[b].second]))
                      .path;
        paths[std::string(name(path))].push_back(gpu_id(cluster_, all[a].first, all[a].second) +
                                                 "-" +
                                                 gpu_id(cluster_, all[b].first, all[b].second));
      }
    }
    for (auto& [path, pairs] : paths) pairs = sorted(pairs);
    return paths;
  }

  // "gpu0 gpu1 12 direct", the number in links or, in hwloc's files, in MB/s.
  Names nvlink() const {
    Names found;
    for (size_t node = 0; node < cluster_.nodes.size(); node++) {
      const Machine& m = machine(node);
      const std::vector<NvPair> pairs = nvlink_pairs(m);
      for (size_t a = 0; a < m.gpus.size(); a++) {
        for (size_t b = a + 1; b < m.gpus.size(); b++) {
          const NvPair& pair = pairs[a * m.gpus.size() + b];
          if (pair.bandwidth == 0) continue;
          found.push_back(fmt::format(
              "{} {} {} {}", gpu_id(cluster_, node, a), gpu_id(cluster_, node, b),
              pair.count > 0 ? pair.count : static_cast<int>(std::lround(pair.bandwidth * 1000)),
              pair.by_switch ? "switch" : "direct"));
        }
      }
    }
    return sorted(found);
  }

  Cluster cluster_;
  Status status_;
};

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Files);

TEST_P(Files, AreAsExpected) {
  if (want()["format"] == "hwloc" && want()["version"] == "3.0") {
    ASSERT_FALSE(status_.ok());
    EXPECT_NE(status_.text().find("version=\"3.0\""), std::string::npos) << status_.text();
    return;
  }
  if (status_.code() == BITRAIL_ERR_UNSUPPORTED) GTEST_SKIP() << status_.text();
  ASSERT_TRUE(status_.ok()) << status_.text();
  EXPECT_EQ(cluster_.nodes.size(), want()["hosts"]);
  size_t numas = 0, seen = 0, port = 0;
  std::set<std::string> switches;
  Names rail_names, unused;
  for (size_t node = 0; node < cluster_.nodes.size(); node++) {
    const Machine& m = machine(node);
    numas += m.numas.size();
    switches.insert(m.nvswitches.begin(), m.nvswitches.end());
    for (size_t gpu = 0; gpu < m.gpus.size(); gpu++, seen++) {
      ASSERT_LT(seen, want()["gpus"].size());
      SCOPED_TRACE(want()["gpus"][seen]["id"]);
      EXPECT_EQ(gpu_id(cluster_, node, gpu), want()["gpus"][seen]["id"]);
      check_gpu(m, gpu, want()["gpus"][seen]);
    }
    for (const Port& p : m.ports) {
      ASSERT_LT(port, want()["nics"].size()) << p.name;
      const json& nic = want()["nics"][port++];
      EXPECT_EQ(p.name, nic["name"]);
      EXPECT_EQ(std::to_string(m.numas[static_cast<size_t>(p.numa)].id), nic["numa"]);
      if (nic.contains("busid")) {
        EXPECT_EQ(m.pci[static_cast<size_t>(p.pci)].busid, nic["busid"]);
      }
      if (nic.contains("speed")) {
        EXPECT_EQ(fmt::format("{}", p.mbps), nic["speed"]);
      }
    }
    const std::vector<int> on_rails = m.gpus.empty() ? std::vector<int>{} : rails(m);
    EXPECT_EQ(on_rails.size(), want()["rails"]);
    EXPECT_EQ(cards(m, on_rails), want()["rail_devices"]);
    if (want().contains("rails_fastest_only")) {
      EXPECT_EQ(fast_rails(m).size(), want()["rails_fastest_only"]);
    }
    for (const std::string& name : port_names(m, on_rails)) rail_names.push_back(name);
    for (size_t i = 0; i < m.ports.size(); i++)
      if (!m.gpus.empty() && std::ranges::find(on_rails, static_cast<int>(i)) == on_rails.end())
        unused.push_back(m.ports[i].name);
  }
  EXPECT_EQ(numas, want()["numa_nodes"]);
  EXPECT_EQ(seen, want()["gpus"].size());
  EXPECT_EQ(port, want()["nics"].size());
  EXPECT_EQ(switches, want()["nvswitches"].get<std::set<std::string>>());
  EXPECT_EQ(rail_names, want()["rail_nics"].get<Names>());
  EXPECT_EQ(sorted(unused), sorted(want()["unused_nics"].get<Names>()));
}

TEST_P(Files, PathsBetweenGpusAreAsExpected) {
  if (!status_.ok()) return;  // the first test says whether that is right
  std::map<std::string, Names> expected;
  for (const auto& [path, pairs] : want()["gpu_pci_paths"].items())
    expected[path] = sorted(pairs.get<Names>());
  EXPECT_EQ(pci_paths(), expected);
  Names links;
  for (const json& pair : want()["nvlink_pairs"]) {
    const std::string how = pair[3];
    const std::string a = pair[0], b = pair[1];
    if (a.substr(0, 3) == b.substr(0, 3) || cluster_.nodes.size() == 1) {
      links.push_back(fmt::format("{} {} {} {}", a, b, pair[2].get<int>(), how.substr(0, 6)));
    } else {
      EXPECT_TRUE(cluster_.one_nvlink_domain);
    }
  }
  EXPECT_EQ(nvlink(), sorted(links));
  if (want().contains("nvlink_to_cpu_MBps")) {
    for (const auto& [gpu, megabytes] : want()["nvlink_to_cpu_MBps"].items()) {
      double found = 0;
      for (const NvLink& link : machine(0).links)
        if (link.target == LinkTarget::processor &&
            machine(0).gpus[static_cast<size_t>(link.gpu)].name == gpu)
          found += link.bandwidth * 1000;
      EXPECT_DOUBLE_EQ(found, megabytes) << gpu;
    }
  }
}

TEST_P(Files, SayWhatTheyLeaveOpen) {
  if (!status_.ok()) return;  // the first test says whether that is right
  std::string notes;
  for (const Machine& m : cluster_.kinds)
    for (const std::string& note : m.notes) notes += note + "\n";
  if (want().contains("devices_without_class")) {
    for (const json& device : want()["devices_without_class"])
      EXPECT_NE(notes.find(device["busid"].get<std::string>() + " has no class"), std::string::npos)
          << notes;
  }
  if (want().contains("self_links")) {
    for (const std::string gpu : want()["self_links"])
      EXPECT_NE(notes.find("of " + gpu + " leads to"), std::string::npos) << notes;
  }
}

INSTANTIATE_TEST_SUITE_P(Tree, Files, testing::ValuesIn(cases_of(EXPECTED_TOPOLOGIES)), test_name);
INSTANTIATE_TEST_SUITE_P(Beside, Files, testing::ValuesIn(cases_of(TOPOLOGIES)), test_name);

TEST(Beside, FilesWithoutStatedLicenceAreThere) {
  if (!std::filesystem::exists(std::string(TOPOLOGIES) + "/expected.json"))
    GTEST_SKIP() << "no folder " << TOPOLOGIES;
  EXPECT_GE(cases_of(TOPOLOGIES).size(), 32U);
}

}  // namespace
}  // namespace bitrail::topology
