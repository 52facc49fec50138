#include "runtime/topology/rails.h"

#include <algorithm>
#include <set>
#include <string>

#include "runtime/topology/paths.h"

namespace bitrail::topology {
namespace {

const Port& port_at(const Machine& machine, int index) {
  return machine.ports[static_cast<size_t>(index)];
}

// What the ports serve: GPUs, or NUMA nodes where there are none.
std::vector<Place> served(const Machine& machine) {
  std::vector<Place> places;
  for (const Gpu& gpu : machine.gpus) places.push_back(place(machine, gpu));
  if (places.empty())
    for (int numa = 0; numa < static_cast<int>(machine.numas.size()); numa++)
      places.push_back({-1, numa});
  return places;
}

std::vector<int> collect(const Machine& machine, bool only_fastest) {
  std::set<int> found;
  for (const Place& from : served(machine)) {
    std::vector<int> ports = nearest_ports(machine, from).ports;
    if (only_fastest) ports = fastest(machine, ports);
    found.insert(ports.begin(), ports.end());
  }
  return {found.begin(), found.end()};
}

std::string card(const Port& port, const Machine& machine) {
  if (port.pci < 0) return port.name;
  const std::string& busid = machine.pci[static_cast<size_t>(port.pci)].busid;
  return busid.substr(0, busid.rfind('.'));
}

}  // namespace

Nearest nearest_ports(const Machine& machine, Place from) {
  const bool any_rdma = std::ranges::any_of(machine.ports, &Port::rdma);
  Nearest best;
  for (int index = 0; index < static_cast<int>(machine.ports.size()); index++) {
    const Port& port = port_at(machine, index);
    if (any_rdma && !port.rdma) continue;
    const Path path = pci_route(machine, from, place(port)).path;
    if (path < best.path) best = {path, {}};
    if (path == best.path) best.ports.push_back(index);
  }
  return best;
}

std::vector<int> fastest(const Machine& machine, const std::vector<int>& ports) {
  double most = 0;
  for (int index : ports) most = std::max(most, port_at(machine, index).mbps);
  std::vector<int> kept;
  for (int index : ports)
    if (port_at(machine, index).mbps == most) kept.push_back(index);
  return kept;
}

std::vector<int> rails(const Machine& machine) { return collect(machine, false); }
std::vector<int> fast_rails(const Machine& machine) { return collect(machine, true); }

int cards(const Machine& machine, const std::vector<int>& ports) {
  std::set<std::string> found;
  for (int index : ports) found.insert(card(port_at(machine, index), machine));
  return static_cast<int>(found.size());
}

std::vector<std::vector<int>> deal_ports(const Machine& machine) {
  const std::vector<Place> places = served(machine);
  std::vector<std::vector<int>> choices, dealt(places.size());
  std::vector<int> load(machine.ports.size(), 0);
  for (size_t i = 0; i < places.size(); i++) {
    choices.push_back(fastest(machine, nearest_ports(machine, places[i]).ports));
    if (choices[i].empty()) continue;
    // Of the least loaded the one behind the fewest switches.
    const int best = *std::ranges::min_element(choices[i], {}, [&](int port) {
      const Route route = pci_route(machine, places[i], place(port_at(machine, port)));
      return std::pair(load[static_cast<size_t>(port)], route.switches);
    });
    load[static_cast<size_t>(best)]++;
    dealt[i].push_back(best);
  }
  for (int port : fast_rails(machine)) {
    if (load[static_cast<size_t>(port)] > 0) continue;
    std::vector<int>* poorest = nullptr;
    for (size_t i = 0; i < places.size(); i++)
      if (std::ranges::find(choices[i], port) != choices[i].end() &&
          (poorest == nullptr || dealt[i].size() < poorest->size()))
        poorest = &dealt[i];
    if (poorest != nullptr) poorest->push_back(port);
  }
  return dealt;
}

}  // namespace bitrail::topology
