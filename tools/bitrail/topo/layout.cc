#include "tools/bitrail/topo/layout.h"

#include <fmt/core.h>

#include <algorithm>

namespace bitrail::tool {
namespace {

using topology::Machine;
using topology::Pci;
using topology::PciKind;

// Pixels.
constexpr double kLeaf = 84, kLeafHeight = 50, kGap = 8, kTitle = 18;

struct Drawing {
  const Machine* machine;
  Layout layout;
};

// Frames above the leaves of this subtree, itself included; -1: it holds no leaf.
int levels(const Machine& m, int pci) {
  const Pci& device = m.pci[static_cast<size_t>(pci)];
  int deepest = device.kind == PciKind::gpu || device.kind == PciKind::nic ? 0 : -1;
  for (size_t child = static_cast<size_t>(pci) + 1; child < m.pci.size(); child++) {
    if (m.pci[child].parent != pci) continue;
    if (const int below = levels(m, static_cast<int>(child)); below >= 0)
      deepest = std::max(deepest, below + 1);
  }
  return deepest;
}

// Places the leaves of one device from x on; returns where they end. A card's ports stand side by
// side.
double place_leaves(Drawing* drawing, int pci, double x, double y) {
  const Machine& m = *drawing->machine;
  for (size_t i = 0; i < m.gpus.size(); i++) {
    if (m.gpus[i].pci != pci) continue;
    drawing->layout.gpus[i] = {x, y, kLeaf, kLeafHeight, m.gpus[i].name, 0};
    x += kLeaf + kGap;
  }
  for (size_t i = 0; i < m.ports.size(); i++) {
    if (m.ports[i].pci != pci || pci < 0) continue;
    drawing->layout.ports[i] = {x, y, kLeaf, kLeafHeight, m.ports[i].name, 0};
    x += kLeaf + kGap;
  }
  return x;
}

// `y`: top of this subtree's frame; `leaves`: top of all leaves.
double place_pci(Drawing* drawing, int pci, double x, double y, double leaves, int depth) {
  const Machine& m = *drawing->machine;
  if (levels(m, pci) < 0) return x;
  const bool framed = m.pci[static_cast<size_t>(pci)].kind == PciKind::bridge;
  const size_t frame = drawing->layout.frames.size();
  if (framed)
    drawing->layout.frames.push_back({x, y, 0, 0, m.pci[static_cast<size_t>(pci)].busid, depth});
  double end = place_leaves(drawing, pci, framed ? x + kGap : x, leaves);
  for (size_t child = static_cast<size_t>(pci) + 1; child < m.pci.size(); child++)
    if (m.pci[child].parent == pci)
      end = place_pci(drawing, static_cast<int>(child), end, y + kTitle, leaves, depth + 1);
  if (!framed) return end;
  Box& box = drawing->layout.frames[frame];
  box.width = end - x;
  box.height = leaves + kLeafHeight + kGap - y;
  return end + kGap;
}

std::string numa_title(const topology::Numa& numa) {
  if (numa.id < 0) return "NUMA node not known";
  return numa.package < 0 ? fmt::format("NUMA node {}", numa.id)
                          : fmt::format("NUMA node {}, socket {}", numa.id, numa.package);
}

double place_numa(Drawing* drawing, int numa, double x, double top, double leaves) {
  const Machine& m = *drawing->machine;
  const size_t frame = drawing->layout.frames.size();
  drawing->layout.frames.push_back(
      {x, top, 0, 0, numa_title(m.numas[static_cast<size_t>(numa)]), 0});
  double end = x + kGap;
  for (size_t i = 0; i < m.pci.size(); i++)
    if (m.pci[i].parent < 0 && m.pci[i].numa == numa)
      end = place_pci(drawing, static_cast<int>(i), end, top + kTitle + 4, leaves, 1);
  for (size_t i = 0; i < m.ports.size(); i++) {
    if (m.ports[i].pci >= 0 || m.ports[i].numa != numa) continue;
    drawing->layout.ports[i] = {end, leaves, kLeaf, kLeafHeight, m.ports[i].name, 0};
    end += kLeaf + kGap;
  }
  Box& box = drawing->layout.frames[frame];
  box.width = std::max(end - x, 150.0);
  box.height = leaves + kLeafHeight + 2 * kGap - top;
  return x + box.width + 2 * kGap;
}

}  // namespace

Layout lay_out(const Machine& machine, double left, double top) {
  Drawing drawing{&machine, {}};
  drawing.layout.gpus.resize(machine.gpus.size());
  drawing.layout.ports.resize(machine.ports.size());
  int deepest = 0;
  for (size_t i = 0; i < machine.pci.size(); i++)
    if (machine.pci[i].parent < 0)
      deepest = std::max(deepest, levels(machine, static_cast<int>(i)));
  const double leaves = top + kTitle + 4 + deepest * kTitle + 6;
  double x = left;
  for (int numa = 0; numa < static_cast<int>(machine.numas.size()); numa++)
    x = place_numa(&drawing, numa, x, top, leaves);
  drawing.layout.width = x - left - 2 * kGap;
  drawing.layout.top = top;
  drawing.layout.bottom = leaves + kLeafHeight + 2 * kGap;
  return drawing.layout;
}

}  // namespace bitrail::tool
