#include "runtime/topology/hwloc_links.h"

#include <hwloc/distances.h>

#include <algorithm>
#include <iterator>

namespace bitrail::topology {
namespace {

struct End {
  LinkTarget kind = LinkTarget::gpu;
  int index = -1;
};

// A matrix names GPUs and switches by their PCI or OS devices, processors by package or node.
End end_of(const HwlocDevices& devices, hwloc_obj_t object) {
  hwloc_obj_t pci = object;
  while (pci != nullptr && pci->type != HWLOC_OBJ_PCI_DEVICE) pci = pci->parent;
  if (pci == nullptr) {
    if (object == nullptr || object->nodeset == nullptr) return {};
    for (const auto& [numa, index] : devices.numas)
      if (hwloc_bitmap_isset(object->nodeset, numa->os_index))
        return {LinkTarget::processor, index};
    return {};
  }
  if (const auto gpu = devices.gpus.find(pci); gpu != devices.gpus.end())
    return {LinkTarget::gpu, gpu->second};
  if (const auto found = devices.switches.find(pci); found != devices.switches.end())
    return {LinkTarget::nvswitch, found->second};
  return {};
}

void read_matrix(const HwlocDevices& devices, const hwloc_distances_s& matrix, Machine* machine) {
  std::vector<End> ends;
  for (unsigned i = 0; i < matrix.nbobjs; i++) ends.push_back(end_of(devices, matrix.objs[i]));
  for (size_t from = 0; from < ends.size(); from++) {
    if (ends[from].index < 0 || ends[from].kind != LinkTarget::gpu) continue;
    for (size_t to = 0; to < ends.size(); to++) {
      const uint64_t megabytes = matrix.values[from * ends.size() + to];
      const bool itself = ends[to].kind == LinkTarget::gpu && ends[to].index == ends[from].index;
      if (ends[to].index < 0 || itself || megabytes == 0 || megabytes > 100'000'000) continue;
      NvLink link;
      link.gpu = ends[from].index;
      link.target = ends[to].kind;
      link.peer = ends[to].index;
      link.bandwidth = static_cast<double>(megabytes) / 1000;
      machine->links.push_back(link);
    }
  }
}

}  // namespace

void read_hwloc_links(hwloc_topology_t topology, const HwlocDevices& devices, Machine* machine) {
  for (const char* name : {"NVLinkBandwidth", "XGMIBandwidth"}) {
    hwloc_distances_s* matrices[4] = {};
    unsigned count = std::size(matrices);
    if (hwloc_distances_get_by_name(topology, name, &count, matrices, 0) != 0) continue;
    for (unsigned i = 0; i < std::min<unsigned>(count, std::size(matrices)); i++) {
      read_matrix(devices, *matrices[i], machine);
      hwloc_distances_release(topology, matrices[i]);
    }
  }
}

}  // namespace bitrail::topology
