#include "runtime/topology/synthesize.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "runtime/topology/bandwidth.h"
#include "runtime/topology/check.h"

namespace bitrail::topology {
namespace {

struct Counts {
  int gpus, nics, numas, switches;
  double bandwidth;
};

// GT/s of a PCI generation.
double transfers(double generation) {
  return generation < 3 ? 2.5 * generation : std::exp2(generation);
}

// The group, of `groups` equal blocks, that element i of `count` belongs to.
int block(int i, int count, int groups) { return count == 0 ? 0 : i * groups / count; }

// A PCI device below its switch, or at the host bridge of its block.
int attach(int i, int count, const Counts& counts, PciKind kind, uint32_t class_code, int bus,
           Machine* machine) {
  Pci pci;
  pci.parent = counts.switches > 0 ? block(i, count, counts.switches) : -1;
  pci.numa = pci.parent >= 0 ? machine->pci[static_cast<size_t>(pci.parent)].numa
                             : block(i, count, counts.numas);
  pci.kind = kind;
  pci.class_code = class_code;
  pci.bandwidth = counts.bandwidth;
  pci.busid = fmt::format("0000:{:02x}:{:02x}.0", bus, i % 32);
  if (i >= 32) pci.busid = fmt::format("0001:{:02x}:{:02x}.0", bus, i % 32);
  machine->pci.push_back(std::move(pci));
  return static_cast<int>(machine->pci.size()) - 1;
}

void add_gpus(const Shape& shape, const Counts& counts, Machine* machine) {
  for (int i = 0; i < counts.gpus; i++) {
    Gpu gpu;
    gpu.name = fmt::format("gpu{}", i);
    gpu.sm = static_cast<int>(shape.gpu);
    gpu.c2c_bandwidth = shape.c2c_gbs;
    gpu.pci = attach(i, counts.gpus, counts, PciKind::gpu, 0x030200, 0x20, machine);
    machine->gpus.push_back(std::move(gpu));
  }
  if (shape.nvlink == 0 || counts.gpus == 0) return;
  machine->nvswitches.push_back("nvswitch");
  const double each =
      shape.nvlink_gbs > 0 ? shape.nvlink_gbs : nvlink_bandwidth(static_cast<int>(shape.gpu));
  for (int i = 0; i < counts.gpus; i++)
    machine->links.push_back(
        {i, LinkTarget::nvswitch, 0, static_cast<int>(shape.nvlink), each * shape.nvlink});
}

void add_nics(const Shape& shape, const Counts& counts, Machine* machine) {
  for (int i = 0; i < counts.nics; i++) {
    Port port;
    port.name = fmt::format("nic{}", i);
    port.port = 1;
    port.mbps = shape.nic_mbps;
    port.pci = attach(i, counts.nics, counts, PciKind::nic, 0x020000, 0x40, machine);
    port.numa = machine->pci.back().numa;
    machine->ports.push_back(std::move(port));
  }
}

}  // namespace

Machine synthesize(const Shape& shape) {
  Machine machine;
  Counts counts{static_cast<int>(shape.gpus), static_cast<int>(shape.nics), 0, 0, 0};
  const int sockets =
      shape.sockets > 0 ? static_cast<int>(shape.sockets) : (counts.gpus > 1 ? 2 : 1);
  counts.numas = sockets * static_cast<int>(shape.numa);
  counts.switches =
      shape.switches >= 0 ? static_cast<int>(shape.switches) : std::min(counts.gpus, counts.nics);
  counts.bandwidth = pci_bandwidth(transfers(shape.pcie), static_cast<int>(shape.lanes));
  for (int i = 0; i < counts.numas; i++) {
    Numa numa;
    numa.id = i;
    numa.package = i / static_cast<int>(shape.numa);
    machine.numas.push_back(std::move(numa));
  }
  for (int i = 0; i < counts.switches; i++) {
    Pci pci;
    pci.busid = fmt::format("0000:{:02x}:00.0", 0x80 + i);
    pci.numa = block(i, counts.switches, counts.numas);
    pci.class_code = 0x060400;
    pci.kind = PciKind::bridge;
    pci.bandwidth = counts.bandwidth;
    machine.pci.push_back(std::move(pci));
  }
  add_gpus(shape, counts, &machine);
  add_nics(shape, counts, &machine);
  note_oddities(&machine);
  return machine;
}

}  // namespace bitrail::topology
