#include "runtime/topology/nccl_xml.h"

#include <memory>

#include "runtime/topology/bandwidth.h"
#include "runtime/topology/check.h"
#include "runtime/topology/nccl_attributes.h"
#include "runtime/topology/nccl_draft.h"

namespace bitrail::topology {
namespace {

constexpr uint32_t kBridgeClass = 0x0604, kNvSwitchClass = 0x0680, kAcceleratorClass = 0x1200;

Status read_pci(const XmlFile& file, pugi::xml_node node, int parent, Draft* draft);

PciKind kind_of(pugi::xml_node node, uint32_t class_code) {
  if (node.child("gpu") || node.child("apu")) return PciKind::gpu;
  if (node.child("nic")) return PciKind::nic;
  if (node.child("pci") || class_code >> 8 == kBridgeClass) return PciKind::bridge;
  if (class_code >> 16 == 0x03 || class_code >> 8 == kAcceleratorClass) return PciKind::gpu;
  if (class_code >> 16 == 0x02) return PciKind::nic;
  if (class_code >> 8 == kNvSwitchClass) return PciKind::nvswitch;
  return PciKind::other;
}

Status add_port(const XmlFile& file, pugi::xml_node net, int pci, Draft* draft) {
  Machine& m = draft->machine;
  Port port;
  BITRAIL_TRY(read_net(file, net, &port));
  port.pci = pci;
  port.numa = static_cast<int>(m.numas.size()) - 1;
  for (const Port& other : m.ports)
    if (other.name == port.name)
      return failure(BITRAIL_ERR_CONFIG, "{}: another net has this name", where(file, net));
  m.ports.push_back(std::move(port));
  if (m.ports.size() > kMaxPorts)
    return failure(BITRAIL_ERR_CONFIG, "{}: more than {} network ports", where(file, net),
                   kMaxPorts);
  return {};
}

Status add_nic(const XmlFile& file, pugi::xml_node nic, int pci, Draft* draft) {
  for (pugi::xml_node net : nic.children("net")) BITRAIL_TRY(add_port(file, net, pci, draft));
  return {};
}

Status add_gpu(const XmlFile& file, pugi::xml_node pci, int index, Draft* draft) {
  Machine& m = draft->machine;
  pugi::xml_node node = pci.child("gpu");
  if (!node) node = pci.child("apu");
  Gpu gpu;
  gpu.pci = index;
  BITRAIL_TRY(read_gpu(file, node, &gpu));
  if (gpu.name.empty()) gpu.name = m.pci[static_cast<size_t>(index)].busid;
  for (const Gpu& other : m.gpus)
    if (other.name == gpu.name || (gpu.rank >= 0 && other.rank == gpu.rank))
      return failure(BITRAIL_ERR_CONFIG, "{}: another GPU is this one or has its rank {}",
                     where(file, node), gpu.rank);
  draft->gpu_at[m.pci[static_cast<size_t>(index)].busid] = static_cast<int>(m.gpus.size());
  m.gpus.push_back(std::move(gpu));
  draft->gpus.push_back(node);
  if (m.gpus.size() > kMaxGpus)
    return failure(BITRAIL_ERR_CONFIG, "{}: more than {} GPUs", where(file, pci), kMaxGpus);
  return {};
}

// What hangs on the device; port by class where there is no nic element.
Status add_contents(const XmlFile& file, pugi::xml_node node, int index, Draft* draft) {
  Machine& m = draft->machine;
  const Pci device = m.pci[static_cast<size_t>(index)];
  if (device.kind == PciKind::gpu) BITRAIL_TRY(add_gpu(file, node, index, draft));
  if (device.kind == PciKind::nvswitch) nvswitch_number(device.busid, draft);
  if (device.kind == PciKind::nic && !node.child("nic"))
    m.ports.push_back({device.busid, index, device.numa});
  if (device.kind == PciKind::other)
    note(&m, fmt::format("line {}: PCI device {} {}: it is taken for neither GPU nor NIC",
                         line_of(file, node), device.busid,
                         device.class_code == 0
                             ? std::string("has no class")
                             : fmt::format("is of class 0x{:06x}", device.class_code)));
  for (pugi::xml_node nic : node.children("nic")) BITRAIL_TRY(add_nic(file, nic, index, draft));
  for (pugi::xml_node child : node.children("pci"))
    BITRAIL_TRY(read_pci(file, child, index, draft));
  return {};
}

Status read_pci(const XmlFile& file, pugi::xml_node node, int parent, Draft* draft) {
  Machine& m = draft->machine;
  Pci device;
  device.parent = parent;
  device.numa = static_cast<int>(m.numas.size()) - 1;
  BITRAIL_TRY(read_busid(file, node, "busid", &device.busid));
  BITRAIL_TRY(read_class(file, node, "class", &device.class_code));
  BITRAIL_TRY(read_link(file, node, &device.bandwidth));
  device.kind = kind_of(node, device.class_code);
  if (device.kind == PciKind::gpu && node.child("nic"))
    return failure(BITRAIL_ERR_CONFIG, "{}: is a GPU and holds a <nic>", where(file, node));
  const auto [first, added] = draft->seen.try_emplace(device.busid, node);
  if (!added)
    return failure(BITRAIL_ERR_CONFIG, "{}: line {} has this device already", where(file, node),
                   line_of(file, first->second));
  if (m.pci.size() == kMaxPci)
    return failure(BITRAIL_ERR_CONFIG, "{}: more than {} PCI devices", where(file, node), kMaxPci);
  m.pci.push_back(std::move(device));
  return add_contents(file, node, static_cast<int>(m.pci.size()) - 1, draft);
}

Status read_numa(const XmlFile& file, pugi::xml_node node, Draft* draft) {
  Machine& m = draft->machine;
  Numa numa;
  BITRAIL_TRY(read_cpu(file, node, &numa));
  for (const Numa& other : m.numas)
    if (other.id == numa.id)
      return failure(BITRAIL_ERR_CONFIG, "{}: another <cpu> is NUMA node {}", where(file, node),
                     numa.id);
  m.numas.push_back(std::move(numa));
  for (pugi::xml_node child : node.children()) {
    const std::string_view name = child.name();
    if (name == "pci") {
      BITRAIL_TRY(read_pci(file, child, -1, draft));
    } else if (name == "nic") {
      BITRAIL_TRY(add_nic(file, child, -1, draft));
    } else if (child.type() == pugi::node_element) {
      note(&m, fmt::format("line {}: <{}> in a <cpu> is not known: left out", line_of(file, child),
                           name.substr(0, 64)));
    }
  }
  return {};
}

// A switch link that is a single lane is an invention of a hypervisor: as wide as what hangs on it.
void widen_virtual_switches(Machine* m) {
  const double lane = pci_bandwidth(64, 1);
  for (size_t i = m->pci.size(); i-- > 0;) {
    const Pci& device = m->pci[i];
    if (device.parent < 0) continue;
    Pci& above = m->pci[static_cast<size_t>(device.parent)];
    if (above.bandwidth <= lane && above.bandwidth < device.bandwidth)
      above.bandwidth = device.bandwidth;
  }
}

// The machine of this host_hash; a new one if it is the first of its <cpu>s.
Draft* draft_of(const std::string& host, std::vector<std::unique_ptr<Draft>>* drafts) {
  for (const std::unique_ptr<Draft>& draft : *drafts)
    if (draft->host == host) return draft.get();
  drafts->push_back(std::make_unique<Draft>());
  drafts->back()->host = drafts->back()->machine.name = host;
  return drafts->back().get();
}

Status read_system(const XmlFile& file, std::vector<std::unique_ptr<Draft>>* drafts) {
  const pugi::xml_node system = file.document.document_element();
  const std::string_view version = system.attribute("version").value();
  if (version != "1" && version != "2")
    return failure(BITRAIL_ERR_CONFIG,
                   "{}: version=\"{}\": versions 1 (NCCL) and 2 (RCCL) are known",
                   where(file, system), version.substr(0, 64));
  for (pugi::xml_node node : system.children()) {
    if (node.type() != pugi::node_element) continue;
    if (std::string_view(node.name()) != "cpu")
      return failure(BITRAIL_ERR_CONFIG, "{}: stands in no <cpu>: no path leads there",
                     where(file, node));
    std::string host;
    BITRAIL_TRY(plain_text(file, node, "host_hash", &host));
    if (!drafts->empty() && host.empty() != drafts->front()->host.empty())
      return failure(BITRAIL_ERR_CONFIG, "{}: some <cpu> have a host_hash and some do not",
                     where(file, node));
    BITRAIL_TRY(read_numa(file, node, draft_of(host, drafts)));
  }
  return {};
}

}  // namespace

Status read_nccl(const XmlFile& file, Cluster* cluster) {
  std::vector<std::unique_ptr<Draft>> drafts;
  BITRAIL_TRY(read_system(file, &drafts));
  bool any_switch = false;
  for (const std::unique_ptr<Draft>& draft : drafts) {
    BITRAIL_TRY(read_links(file, draft.get()));
    widen_virtual_switches(&draft->machine);
    note_oddities(&draft->machine);
    any_switch = any_switch || !draft->machine.nvswitches.empty();
    cluster->nodes.push_back(static_cast<int>(cluster->kinds.size()));
    cluster->kinds.push_back(std::move(draft->machine));
  }
  // NCCL writes several hosts into one system only where NVLink joins them.
  cluster->one_nvlink_domain = drafts.size() > 1 && any_switch;
  return check(*cluster, file.name);
}

}  // namespace bitrail::topology
