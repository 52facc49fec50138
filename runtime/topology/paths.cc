#include "runtime/topology/paths.h"

#include <algorithm>

#include "runtime/topology/bandwidth.h"
#include "runtime/topology/nvlink.h"

namespace bitrail::topology {
namespace {

const Pci& pci_at(const Machine& machine, int index) {
  return machine.pci[static_cast<size_t>(index)];
}

// The device, then every switch above it.
std::vector<int> upwards(const Machine& machine, int pci) {
  std::vector<int> way;
  for (; pci >= 0; pci = pci_at(machine, pci).parent) way.push_back(pci);
  return way;
}

// Limits `route` by the links of way[0] ... way[count - 1] to what is above them.
void narrow(const Machine& machine, const std::vector<int>& way, size_t count, Route* route) {
  for (size_t i = 0; i < count; i++)
    route->bandwidth = std::min(route->bandwidth, pci_at(machine, way[i]).bandwidth);
}

bool better(const Route& a, const Route& b) {
  return a.path != b.path ? a.path < b.path : a.bandwidth > b.bandwidth;
}

// To a GPU, without the ways through a third one.
Route direct_gpu(const Machine& machine, const std::vector<NvPair>& pairs, size_t from, size_t to) {
  if (from == to) return {Path::loc, kLocalBandwidth, 0, -1};
  const NvPair& pair = pairs[from * machine.gpus.size() + to];
  if (pair.bandwidth > 0) return {Path::nvl, pair.bandwidth, 0, -1};
  return pci_route(machine, place(machine, machine.gpus[from]), place(machine, machine.gpus[to]));
}

// To a port, without help.
Route direct_port(const Machine& machine, const Gpu& gpu, const Port& port) {
  Route route = pci_route(machine, place(machine, gpu), place(port));
  if (route.path == Path::phb && gpu.c2c_bandwidth > 0) {
    Route processor = pci_route(machine, {-1, port.numa}, place(port));
    processor.bandwidth = std::min(processor.bandwidth, gpu.c2c_bandwidth);
    processor.path = Path::p2c;
    if (processor.bandwidth >= route.bandwidth) route = processor;
  }
  if (port.mbps > 0) route.bandwidth = std::min(route.bandwidth, port.mbps / 8000);
  return route;
}

// Makes *best the way through `peer` where that is worth it, and better than *best where that goes
// through a GPU already: nearest the port first, then fastest.
void forward(const Routes& direct, size_t from, size_t peer, size_t port, Route* best) {
  const Route& own = direct.to_port(from, port);
  const Route& last = direct.to_port(peer, port);
  if (last.path > Path::pxb) return;
  const Route by{Path::pxn, std::min(direct.to_gpu(from, peer).bandwidth, last.bandwidth),
                 last.switches, static_cast<int>(peer)};
  if (by.bandwidth <= own.bandwidth && own.path <= Path::pxn) return;
  if (best->via >= 0) {
    const Route& rival = direct.to_port(static_cast<size_t>(best->via), port);
    if (rival.path < last.path || (rival.path == last.path && best->bandwidth >= by.bandwidth))
      return;
  }
  *best = by;
}

}  // namespace

Route pci_route(const Machine& machine, Place from, Place to) {
  if (from.pci >= 0 && from.pci == to.pci) return {Path::loc, kLocalBandwidth, 0, -1};
  const std::vector<int> up = upwards(machine, from.pci), down = upwards(machine, to.pci);
  Route route{Path::phb, kLocalBandwidth, 0, -1};
  // Where the two ways meet.
  for (size_t i = 0; i < up.size(); i++) {
    const auto found = std::ranges::find(down, up[i]);
    if (found == down.end()) continue;
    const auto j = static_cast<size_t>(found - down.begin());
    narrow(machine, up, i, &route);
    narrow(machine, down, j, &route);
    // The meeting place is a switch between them; where one hangs below the other it is the other.
    route.switches = static_cast<int>(i + j) - 1;
    route.path = route.switches <= 1 ? Path::pix : Path::pxb;
    return route;
  }
  narrow(machine, up, up.size(), &route);
  narrow(machine, down, down.size(), &route);
  route.switches =
      static_cast<int>((up.empty() ? 0 : up.size() - 1) + (down.empty() ? 0 : down.size() - 1));
  if (from.numa != to.numa) {
    route.path = Path::sys;
    const Numa& numa = machine.numas[static_cast<size_t>(from.numa)];
    route.bandwidth = std::min(route.bandwidth, socket_bandwidth(numa));
  }
  return route;
}

Routes find_routes(const Machine& machine) {
  const std::vector<NvPair> pairs = nvlink_pairs(machine);
  const size_t gpus = machine.gpus.size(), ports = machine.ports.size();
  Routes direct{gpus, ports, {}, {}};
  for (size_t from = 0; from < gpus; from++) {
    for (size_t to = 0; to < gpus; to++)
      direct.between.push_back(direct_gpu(machine, pairs, from, to));
    for (const Port& port : machine.ports)
      direct.out.push_back(direct_port(machine, machine.gpus[from], port));
  }
  Routes best = direct;
  for (size_t from = 0; from < gpus; from++) {
    for (size_t peer = 0; peer < gpus; peer++) {
      const Route& first = direct.to_gpu(from, peer);
      if (first.path != Path::nvl) continue;
      for (size_t to = 0; to < gpus; to++) {
        const Route& second = direct.to_gpu(peer, to);
        if (second.path != Path::nvl || to == from) continue;
        const Route by{Path::nvb, std::min(first.bandwidth, second.bandwidth), 0,
                       static_cast<int>(peer)};
        if (Route& route = best.between[from * gpus + to]; better(by, route)) route = by;
      }
      for (size_t port = 0; port < ports; port++)
        forward(direct, from, peer, port, &best.out[from * ports + port]);
    }
  }
  return best;
}

Path between_nodes(const Cluster& cluster) {
  return cluster.one_nvlink_domain ? Path::nvl : Path::net;
}

}  // namespace bitrail::topology
