#include "runtime/topology/check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace bitrail::topology {
namespace {

bool in(int index, size_t size) { return index >= 0 && static_cast<size_t>(index) < size; }

bool plain(std::string_view name) { return !name.empty() && printable(name); }

bool usable(double bandwidth) { return std::isfinite(bandwidth) && bandwidth >= 0; }

Status bad(const std::string& where, const std::string& what) {
  return failure(BITRAIL_ERR_CONFIG, "{}: {}", where, what);
}

Status check_sizes(const Machine& m, const std::string& where) {
  struct Size {
    const char* what;
    size_t size, most;
  };
  for (const Size& s :
       {Size{"NUMA nodes", m.numas.size(), kMaxNumas}, Size{"PCI devices", m.pci.size(), kMaxPci},
        Size{"GPUs", m.gpus.size(), kMaxGpus}, Size{"network ports", m.ports.size(), kMaxPorts},
        Size{"NVSwitches", m.nvswitches.size(), kMaxSwitches},
        Size{"NVLinks", m.links.size(), kMaxLinks}})
    if (s.size > s.most) return bad(where, fmt::format("more than {} {}", s.most, s.what));
  for (const Numa& numa : m.numas)
    if (!plain(numa.arch + "-") || !plain(numa.vendor + "-"))
      return bad(where, "a processor's name that cannot be printed");
  for (const std::string& name : m.nvswitches)
    if (!plain(name)) return bad(where, "an NVSwitch's name that cannot be printed");
  if (m.numas.empty()) return bad(where, "a machine without a NUMA node");
  return {};
}

// Parents stand before their children: no cycle is possible.
Status check_pci(const Machine& m, const std::string& where) {
  std::set<std::string_view> busids;
  std::vector<int> depth(m.pci.size(), 0);
  for (size_t i = 0; i < m.pci.size(); i++) {
    const Pci& p = m.pci[i];
    if (!plain(p.busid)) return bad(where, "a PCI address that cannot be printed");
    if (!in(p.numa, m.numas.size()) || p.parent < -1 || p.parent >= static_cast<int>(i))
      return bad(where, fmt::format("PCI device {} hangs nowhere", p.busid));
    if (p.parent >= 0 && m.pci[static_cast<size_t>(p.parent)].numa != p.numa)
      return bad(where, fmt::format("PCI device {} and its switch are on two NUMA nodes", p.busid));
    if (p.parent >= 0) depth[i] = depth[static_cast<size_t>(p.parent)] + 1;
    if (depth[i] > kMaxPciDepth)
      return bad(where, fmt::format("PCI device {} is below too many switches", p.busid));
    if (!usable(p.bandwidth)) return bad(where, fmt::format("bandwidth of {}", p.busid));
    if (!busids.insert(p.busid).second)
      return bad(where, fmt::format("PCI device {} stands there twice", p.busid));
  }
  return {};
}

Status check_gpus(const Machine& m, const std::string& where) {
  std::set<std::string_view> names;
  std::set<int> places, ranks;
  for (const Gpu& gpu : m.gpus) {
    if (!plain(gpu.name)) return bad(where, "a GPU's name that cannot be printed");
    if (!names.insert(gpu.name).second)
      return bad(where, fmt::format("two GPUs are called '{}'", gpu.name));
    if (!in(gpu.pci, m.pci.size()) || !places.insert(gpu.pci).second)
      return bad(where, fmt::format("GPU {} has no PCI device of its own", gpu.name));
    if (gpu.rank >= 0 && !ranks.insert(gpu.rank).second)
      return bad(where, fmt::format("two GPUs are rank {}", gpu.rank));
    if (!usable(gpu.c2c_bandwidth)) return bad(where, fmt::format("C2C of {}", gpu.name));
  }
  return {};
}

Status check_ports(const Machine& m, const std::string& where) {
  std::set<std::string_view> names;
  for (const Port& port : m.ports) {
    if (!plain(port.name)) return bad(where, "a port's name that cannot be printed");
    if (!names.insert(port.name).second)
      return bad(where, fmt::format("two ports are called '{}'", port.name));
    const bool placed = port.pci == -1 || (in(port.pci, m.pci.size()) &&
                                           m.pci[static_cast<size_t>(port.pci)].numa == port.numa);
    if (!placed || !in(port.numa, m.numas.size()))
      return bad(where, fmt::format("port {} hangs nowhere", port.name));
    if (!usable(port.mbps)) return bad(where, fmt::format("speed of {}", port.name));
  }
  return {};
}

Status check_links(const Machine& m, const std::string& where) {
  for (const NvLink& link : m.links) {
    const size_t peers = link.target == LinkTarget::gpu        ? m.gpus.size()
                         : link.target == LinkTarget::nvswitch ? m.nvswitches.size()
                                                               : m.numas.size();
    if (!in(link.gpu, m.gpus.size()) || !in(link.peer, peers))
      return bad(where, "an NVLink leads nowhere");
    if (link.target == LinkTarget::gpu && link.gpu == link.peer)
      return bad(where, "an NVLink leads to its own GPU");
    if (link.count < 0 || link.count > 1024 || !usable(link.bandwidth) || link.bandwidth == 0)
      return bad(where, "an NVLink without bandwidth");
  }
  return {};
}

}  // namespace

bool printable(std::string_view text) {
  return text.size() <= kMaxName && std::ranges::none_of(text, [](char c) {
           return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
         });
}

Status check(const Machine& machine, const std::string& where) {
  BITRAIL_TRY(check_sizes(machine, where));
  BITRAIL_TRY(check_pci(machine, where));
  BITRAIL_TRY(check_gpus(machine, where));
  BITRAIL_TRY(check_ports(machine, where));
  return check_links(machine, where);
}

Status check(const Cluster& cluster, const std::string& where) {
  if (cluster.nodes.empty()) return bad(where, "no machine in it");
  if (cluster.nodes.size() > kMaxNodes)
    return bad(where, fmt::format("more than {} nodes", kMaxNodes));
  for (int kind : cluster.nodes)
    if (!in(kind, cluster.kinds.size())) return bad(where, "a node of no kind");
  for (const Machine& machine : cluster.kinds) BITRAIL_TRY(check(machine, where));
  return {};
}

void note(Machine* machine, std::string text) {
  if (machine->notes.size() < kMaxNotes) machine->notes.push_back(std::move(text));
}

void note_oddities(Machine* m) {
  if (!m->gpus.empty() && m->ports.empty())
    note(m, "no network port is known: nothing leads to other machines");
  for (const Port& port : m->ports)
    if (port.pci < 0)
      note(m, fmt::format("port {} has no PCI device: taken as attached to NUMA node {}", port.name,
                          m->numas[static_cast<size_t>(port.numa)].id));
  std::map<std::pair<int, int>, int> listed;
  for (const NvLink& link : m->links)
    if (link.target == LinkTarget::gpu) listed[{link.gpu, link.peer}] += link.count;
  for (const auto& [ends, there] : listed) {
    const auto [a, b] = ends;
    const auto other = listed.find({b, a});
    const int back = other == listed.end() ? 0 : other->second;
    if (there == back || (a > b && back != 0)) continue;
    note(m, fmt::format("{} lists {} NVLinks to {}, which lists {} back",
                        m->gpus[static_cast<size_t>(a)].name, there,
                        m->gpus[static_cast<size_t>(b)].name, back));
  }
}

}  // namespace bitrail::topology
