#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <vector>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "tools/bitrail/topo/draw.h"

namespace bitrail::tool {
namespace {

using namespace topology;

int rail_of(const std::vector<int>& rails, int port) {
  const auto found = std::ranges::find(rails, port);
  return found == rails.end() ? -1 : static_cast<int>(found - rails.begin());
}

std::string gpu_line(const Machine& m, const Gpu& gpu) {
  const Pci& pci = m.pci[static_cast<size_t>(gpu.pci)];
  std::string text = fmt::format("GPU {}", gpu.name);
  if (gpu.name != pci.busid) text += "  " + pci.busid;
  if (gpu.sm > 0) text += fmt::format("  sm {}", gpu.sm);
  if (gpu.rank >= 0) text += fmt::format("  rank {}", gpu.rank);
  text += fmt::format("  {:.4g} GB/s", pci.bandwidth);
  if (gpu.c2c_bandwidth > 0) text += fmt::format(", C2C {:.4g} GB/s", gpu.c2c_bandwidth);
  return text;
}

std::string port_line(const Machine& m, int index, const std::vector<int>& rails) {
  const Port& port = m.ports[static_cast<size_t>(index)];
  std::string text = fmt::format("NIC {}", port.name);
  if (port.pci >= 0 && port.name != m.pci[static_cast<size_t>(port.pci)].busid)
    text += "  " + m.pci[static_cast<size_t>(port.pci)].busid;
  text += "  " + speed_text(port.mbps);
  if (!port.rdma) text += "  (plain Ethernet)";
  if (const int rail = rail_of(rails, index); rail >= 0) text += fmt::format("  rail {}", rail);
  return text;
}

// The lines of one PCI device and of what is below it, `indent` deep.
void draw_pci(const Machine& m, int index, size_t indent, const std::vector<int>& rails,
              std::string* text) {
  const Pci& pci = m.pci[static_cast<size_t>(index)];
  const std::string blank(indent * 2, ' ');
  if (pci.kind == PciKind::bridge)
    *text += fmt::format("{}switch {}  {:.4g} GB/s\n", blank, pci.busid, pci.bandwidth);
  if (pci.kind == PciKind::nvswitch) *text += fmt::format("{}NVSwitch {}\n", blank, pci.busid);
  if (pci.kind == PciKind::other) *text += fmt::format("{}device {}\n", blank, pci.busid);
  for (const Gpu& gpu : m.gpus)
    if (gpu.pci == index) *text += blank + gpu_line(m, gpu) + "\n";
  for (int port = 0; port < static_cast<int>(m.ports.size()); port++)
    if (m.ports[static_cast<size_t>(port)].pci == index)
      *text += blank + port_line(m, port, rails) + "\n";
  for (size_t child = static_cast<size_t>(index) + 1; child < m.pci.size(); child++)
    if (m.pci[child].parent == index) draw_pci(m, static_cast<int>(child), indent + 1, rails, text);
}

std::string tree(const Machine& m, const std::vector<int>& rails) {
  std::string text;
  for (int numa = 0; numa < static_cast<int>(m.numas.size()); numa++) {
    const Numa& n = m.numas[static_cast<size_t>(numa)];
    text += n.id < 0 ? std::string("NUMA node not known") : fmt::format("NUMA node {}", n.id);
    if (n.package >= 0) text += fmt::format("  socket {}", n.package);
    if (!n.cpus.empty()) text += "  cpus " + n.cpus.substr(0, 40);
    if (!n.vendor.empty()) text += "  " + n.vendor;
    text += "\n";
    for (size_t i = 0; i < m.pci.size(); i++)
      if (m.pci[i].parent < 0 && m.pci[i].numa == numa)
        draw_pci(m, static_cast<int>(i), 1, rails, &text);
    for (int port = 0; port < static_cast<int>(m.ports.size()); port++)
      if (const Port& p = m.ports[static_cast<size_t>(port)]; p.pci < 0 && p.numa == numa)
        text += "  " + port_line(m, port, rails) + "\n";
  }
  if (!m.nvswitches.empty()) {
    text += fmt::format("NVSwitch fabric of {}:", m.nvswitches.size());
    for (const std::string& name : m.nvswitches) text += " " + name;
    text += "\n";
  }
  return text;
}

// Rows and columns of cells, the first column to the left.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); i++) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); i++) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string matrix(const Machine& m, const Routes& routes) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::set<Path> used;
  for (const Gpu& gpu : m.gpus) rows[0].push_back(gpu.name);
  for (const Port& port : m.ports) rows[0].push_back(port.name);
  const std::vector<NvPair> pairs = nvlink_pairs(m);
  for (size_t gpu = 0; gpu < m.gpus.size(); gpu++) {
    std::vector<std::string> row = {m.gpus[gpu].name};
    for (size_t to = 0; to < m.gpus.size(); to++) {
      used.insert(routes.to_gpu(gpu, to).path);
      row.push_back(cell(routes.to_gpu(gpu, to).path, pairs[gpu * m.gpus.size() + to].count));
    }
    for (size_t to = 0; to < m.ports.size(); to++) {
      used.insert(routes.to_port(gpu, to).path);
      row.push_back(cell(routes.to_port(gpu, to).path, 0));
    }
    rows.push_back(std::move(row));
  }
  if (m.gpus.empty()) {
    for (int numa = 0; numa < static_cast<int>(m.numas.size()); numa++) {
      rows.push_back({fmt::format("NUMA {}", m.numas[static_cast<size_t>(numa)].id)});
      for (const Port& port : m.ports) {
        const Path path = pci_route(m, {-1, numa}, place(port)).path;
        used.insert(path);
        rows.back().push_back(cell(path, 0));
      }
    }
  }
  std::string text = table(rows) + "\n";
  for (const Path path : used)
    if (path != Path::loc)
      text += fmt::format(
          "  {:<4} {}\n", path == Path::nvl ? "NV#" : name(path),
          path == Path::nvl ? "NVLink, # links, directly or through NVSwitches" : meaning(path));
  return text;
}

std::string route_text(const Machine& m, const Route& route) {
  std::string text(name(route.path));
  if (route.via >= 0) text += " via " + m.gpus[static_cast<size_t>(route.via)].name;
  text += fmt::format(", {:.4g} GB/s", route.bandwidth);
  if (route.switches > 0)
    text += fmt::format(", {} PCI switch{}", route.switches, route.switches == 1 ? "" : "es");
  return text;
}

// Each GPU's own ports, then the rails it reaches through another GPU.
std::string network_routes(const Machine& m, const Routes& routes, const std::vector<int>& rails) {
  std::vector<std::vector<std::string>> rows;
  const std::vector<std::vector<int>> dealt = deal_ports(m);
  for (size_t i = 0; i < dealt.size(); i++) {
    for (int port : dealt[i]) {
      const Port& to = m.ports[static_cast<size_t>(port)];
      const Route route = m.gpus.empty() ? pci_route(m, {-1, static_cast<int>(i)}, place(to))
                                         : routes.to_port(i, static_cast<size_t>(port));
      rows.push_back({m.gpus.empty() ? fmt::format("NUMA {}", m.numas[i].id) : m.gpus[i].name,
                      "-> " + to.name, fmt::format("rail {}", rail_of(rails, port)),
                      route_text(m, route)});
    }
  }
  return table(rows);
}

std::string kind_text(const Machine& m) {
  const std::vector<int> rails = fast_rails(m);
  const Routes routes = find_routes(m);
  std::string text = tree(m, rails);
  if (!m.gpus.empty() || !m.ports.empty()) text += "\nPaths\n" + matrix(m, routes);
  if (!rails.empty()) text += "\nRoutes to the network\n" + network_routes(m, routes, rails);
  if (!m.notes.empty()) text += "\nNotes\n";
  for (const std::string& note : m.notes) text += "  " + note + "\n";
  return text;
}

}  // namespace

std::string topology_text(const Cluster& cluster, const std::string& origin) {
  std::string text = fmt::format("{}: {}\n", origin, headline(cluster));
  for (int kind = 0; kind < static_cast<int>(cluster.kinds.size()); kind++) {
    const Machine& m = cluster.kinds[static_cast<size_t>(kind)];
    text += "\n";
    if (cluster.nodes.size() > 1)
      text +=
          fmt::format("Node{} {}{}{}\n", cluster.nodes.size() == cluster.kinds.size() ? "" : "s",
                      nodes_of(cluster, kind), m.name.empty() ? "" : ": ", m.name);
    text += kind_text(m);
  }
  return text;
}

}  // namespace bitrail::tool
