#include "runtime/topology/hwloc_machine.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/topology/bandwidth.h"
#include "runtime/topology/check.h"
#include "runtime/topology/hwloc_links.h"

namespace bitrail::topology {
namespace {

using PciAttributes = hwloc_obj_attr_u::hwloc_pcidev_attr_s;

constexpr unsigned kNvidia = 0x10de, kAmd = 0x1002, kIntel = 0x8086;

// One read while it runs.
struct Reader {
  hwloc_topology_t topology;
  Machine* machine;
  std::map<hwloc_obj_t, int> numa_of, pci_of;
};

std::string info(hwloc_obj_t object, const char* name) {
  const char* value = object == nullptr ? nullptr : hwloc_obj_get_info_by_name(object, name);
  return value == nullptr ? "" : value;
}

int number(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 6 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::stoi(text) : -1;
}

std::string architecture(const std::string& machine) {
  if (machine == "aarch64") return "arm64";
  if (machine == "ppc64le") return "ppc64";
  return machine;
}

void read_numas(Reader* reader) {
  hwloc_obj_t root = hwloc_get_root_obj(reader->topology);
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(reader->topology, HWLOC_OBJ_NUMANODE, object))) {
    hwloc_obj_t package =
        hwloc_get_ancestor_obj_by_type(reader->topology, HWLOC_OBJ_PACKAGE, object);
    Numa numa;
    numa.id = static_cast<int>(object->os_index);
    numa.package = package == nullptr ? -1 : static_cast<int>(package->os_index);
    numa.arch = architecture(info(root, "Architecture"));
    numa.vendor = info(package, "CPUVendor");
    if (numa.vendor.empty()) numa.vendor = info(root, "CPUVendor");
    numa.family = number(info(package, "CPUFamilyNumber"));
    numa.model = number(info(package, "CPUModelNumber"));
    char* cpus = nullptr;
    if (object->cpuset != nullptr && hwloc_bitmap_list_asprintf(&cpus, object->cpuset) >= 0)
      numa.cpus = cpus;
    std::free(cpus);
    reader->numa_of[object] = static_cast<int>(reader->machine->numas.size());
    reader->machine->numas.push_back(std::move(numa));
  }
}

// A node "-1" for devices whose locality is not known; made when first needed.
int unknown_numa(Machine* machine) {
  for (size_t i = 0; i < machine->numas.size(); i++)
    if (machine->numas[i].id == -1) return static_cast<int>(i);
  Numa numa;
  numa.id = -1;
  machine->numas.push_back(numa);
  return static_cast<int>(machine->numas.size()) - 1;
}

// Of what the device's host bridge is attached to: its node, or the first of its package.
int numa_of(Reader* reader, hwloc_obj_t device) {
  hwloc_obj_t above = hwloc_get_non_io_ancestor_obj(reader->topology, device);
  int found = -1;
  if (above != nullptr && above->nodeset != nullptr) {
    for (const auto& [object, index] : reader->numa_of) {
      if (!hwloc_bitmap_isset(above->nodeset, object->os_index)) continue;
      const Numa& numa = reader->machine->numas[static_cast<size_t>(index)];
      if (found >= 0 && reader->machine->numas[static_cast<size_t>(found)].package != numa.package)
        return unknown_numa(reader->machine);
      found = found < 0 ? index : std::min(found, index);
    }
  }
  return found >= 0 ? found : unknown_numa(reader->machine);
}

bool is_pci_bridge(hwloc_obj_t object) {
  return object != nullptr && object->type == HWLOC_OBJ_BRIDGE &&
         object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

int add_pci(Reader* reader, hwloc_obj_t object, const PciAttributes& attributes, int parent,
            PciKind kind) {
  Pci pci;
  pci.busid = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", attributes.domain, attributes.bus,
                          attributes.dev, attributes.func);
  pci.parent = parent;
  pci.numa = parent >= 0 ? reader->machine->pci[static_cast<size_t>(parent)].numa
                         : numa_of(reader, object);
  pci.class_code = static_cast<uint32_t>(attributes.class_id) << 8;
  pci.kind = kind;
  pci.bandwidth = pci_bandwidth_of_hwloc(attributes.linkspeed);
  reader->machine->pci.push_back(std::move(pci));
  const int index = static_cast<int>(reader->machine->pci.size()) - 1;
  reader->pci_of[object] = index;
  return index;
}

// The device with the switches above it, the topmost first.
int add_device(Reader* reader, hwloc_obj_t device, PciKind kind) {
  std::vector<hwloc_obj_t> switches;
  int bridges = 0;
  for (hwloc_obj_t above = device->parent; is_pci_bridge(above); above = above->parent)
    if (++bridges % 2 == 0) switches.push_back(above);
  int parent = -1;
  for (auto above = switches.rbegin(); above != switches.rend(); ++above) {
    const auto known = reader->pci_of.find(*above);
    parent =
        known != reader->pci_of.end()
            ? known->second
            : add_pci(reader, *above, (*above)->attr->bridge.upstream.pci, parent, PciKind::bridge);
  }
  return add_pci(reader, device, device->attr->pcidev, parent, kind);
}

// What the operating system made of a device: names by kind.
struct Names {
  std::string gpu;  // cuda before nvml and rsmi before opencl
  std::vector<hwloc_obj_t> rdma, ethernet;
};

int rank_of(std::string_view name) {
  if (name.starts_with("cuda")) return 3;
  if (name.starts_with("nvml") || name.starts_with("rsmi") || name.starts_with("ze")) return 2;
  return name.starts_with("opencl") ? 1 : 0;
}

void collect_names(hwloc_obj_t parent, Names* names) {
  for (hwloc_obj_t child = parent->io_first_child; child; child = child->next_sibling) {
    if (child->type != HWLOC_OBJ_OS_DEVICE || child->name == nullptr) continue;
    const hwloc_obj_osdev_type_t type = child->attr->osdev.type;
    if (type == HWLOC_OBJ_OSDEV_OPENFABRICS) names->rdma.push_back(child);
    if (type == HWLOC_OBJ_OSDEV_NETWORK) names->ethernet.push_back(child);
    const bool computes = type == HWLOC_OBJ_OSDEV_COPROC || type == HWLOC_OBJ_OSDEV_GPU;
    if (computes && rank_of(child->name) > rank_of(names->gpu)) names->gpu = child->name;
  }
}

// Without a driver's word: display and accelerator classes of those who make GPUs that compute.
bool is_gpu_by_class(const PciAttributes& pci) {
  if (pci.class_id == 0x0302) return true;
  if (pci.class_id == 0x0300) return pci.vendor_id == kNvidia;
  if (pci.class_id == 0x0380)
    return pci.vendor_id == kNvidia || pci.vendor_id == kAmd || pci.vendor_id == kIntel;
  return pci.class_id == 0x1200 && pci.vendor_id == kAmd;
}

bool is_nvswitch(hwloc_obj_t object) {
  const bool named = object->subtype != nullptr && std::string_view(object->subtype) == "NVSwitch";
  return named ||
         (object->attr->pcidev.class_id == 0x0680 && object->attr->pcidev.vendor_id == kNvidia);
}

void add_ports(Reader* reader, const std::vector<hwloc_obj_t>& devices, int pci, bool rdma) {
  Machine& m = *reader->machine;
  for (hwloc_obj_t device : devices) {
    Port port;
    port.name = device->name;
    port.pci = pci;
    port.numa = m.pci[static_cast<size_t>(pci)].numa;
    port.rdma = rdma;
    m.ports.push_back(std::move(port));
  }
}

void read_device(Reader* reader, hwloc_obj_t object, HwlocDevices* devices) {
  Machine& m = *reader->machine;
  Names names;
  collect_names(object, &names);
  if (!names.gpu.empty() || is_gpu_by_class(object->attr->pcidev)) {
    Gpu gpu;
    gpu.pci = add_device(reader, object, PciKind::gpu);
    gpu.name = names.gpu.empty() ? m.pci[static_cast<size_t>(gpu.pci)].busid : names.gpu;
    devices->gpus[object] = static_cast<int>(m.gpus.size());
    m.gpus.push_back(std::move(gpu));
  } else if (!names.rdma.empty() || !names.ethernet.empty()) {
    const int pci = add_device(reader, object, PciKind::nic);
    // The Ethernet face of an RDMA port is the same port.
    if (names.rdma.empty()) {
      add_ports(reader, names.ethernet, pci, false);
    } else {
      add_ports(reader, names.rdma, pci, true);
    }
  } else if (is_nvswitch(object)) {
    const int pci = add_device(reader, object, PciKind::nvswitch);
    devices->switches[object] = static_cast<int>(m.nvswitches.size());
    m.nvswitches.push_back(m.pci[static_cast<size_t>(pci)].busid);
  }
}

}  // namespace

Status machine_of(hwloc_topology_t topology, Machine* machine) {
  Reader reader{topology, machine, {}, {}};
  read_numas(&reader);
  HwlocDevices devices;
  devices.numas = reader.numa_of;
  for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_pcidev(topology, object));) {
    if (machine->pci.size() >= kMaxPci) break;
    read_device(&reader, object, &devices);
  }
  read_hwloc_links(topology, devices, machine);
  note_oddities(machine);
  return check(*machine, "hwloc");
}

}  // namespace bitrail::topology
