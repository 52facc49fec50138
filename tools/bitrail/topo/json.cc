#include <nlohmann/json.hpp>

#include "runtime/topology/nvlink.h"
#include "runtime/topology/paths.h"
#include "runtime/topology/rails.h"
#include "tools/bitrail/topo/draw.h"

namespace bitrail::tool {
namespace {

using namespace topology;
using Json = nlohmann::ordered_json;

Json or_null(int value) { return value < 0 ? Json() : Json(value); }

Json names(const Machine& m, const std::vector<int>& ports) {
  Json list = Json::array();
  for (int port : ports) list.push_back(m.ports[static_cast<size_t>(port)].name);
  return list;
}

Json route_json(const Machine& m, const std::string& to, const Route& route) {
  Json json = {{"to", to},
               {"path", name(route.path)},
               {"GBps", route.bandwidth},
               {"switches", route.switches}};
  if (route.via >= 0) json["via"] = m.gpus[static_cast<size_t>(route.via)].name;
  return json;
}

Json gpu_json(const Machine& m, size_t index, const Routes& routes, const std::vector<int>& own) {
  const Gpu& gpu = m.gpus[index];
  const Nearest nearest = nearest_ports(m, place(m, gpu));
  Json json = {{"name", gpu.name},
               {"busid", m.pci[static_cast<size_t>(gpu.pci)].busid},
               {"numa", m.numas[static_cast<size_t>(place(m, gpu).numa)].id},
               {"rank", or_null(gpu.rank)},
               {"sm", gpu.sm},
               {"nearest", names(m, nearest.ports)},
               {"path", name(nearest.path)},
               {"ports", names(m, own)},
               {"to_gpus", Json::array()},
               {"to_ports", Json::array()}};
  for (size_t to = 0; to < m.gpus.size(); to++)
    if (to != index)
      json["to_gpus"].push_back(route_json(m, m.gpus[to].name, routes.to_gpu(index, to)));
  for (size_t to = 0; to < m.ports.size(); to++)
    json["to_ports"].push_back(route_json(m, m.ports[to].name, routes.to_port(index, to)));
  return json;
}

Json port_json(const Machine& m, const Port& port) {
  return {{"name", port.name},
          {"busid", port.pci < 0 ? Json() : Json(m.pci[static_cast<size_t>(port.pci)].busid)},
          {"numa", m.numas[static_cast<size_t>(port.numa)].id},
          {"Mbps", port.mbps},
          {"rdma", port.rdma}};
}

Json kind_json(const Cluster& cluster, int kind) {
  const Machine& m = cluster.kinds[static_cast<size_t>(kind)];
  Json json = {{"nodes", nodes_of(cluster, kind)},
               {"name", m.name},
               {"numa_nodes", Json::array()},
               {"gpus", Json::array()},
               {"network_ports", Json::array()},
               {"nvswitches", m.nvswitches},
               {"nvlink_pairs", Json::array()},
               {"rails", names(m, fast_rails(m))},
               {"notes", m.notes}};
  for (const Numa& numa : m.numas)
    json["numa_nodes"].push_back({{"id", numa.id}, {"socket", or_null(numa.package)}});
  const Routes routes = find_routes(m);
  const std::vector<std::vector<int>> dealt = deal_ports(m);
  const std::vector<NvPair> pairs = nvlink_pairs(m);
  for (size_t gpu = 0; gpu < m.gpus.size(); gpu++) {
    json["gpus"].push_back(gpu_json(m, gpu, routes, dealt[gpu]));
    for (size_t to = gpu + 1; to < m.gpus.size(); to++)
      if (const NvPair& pair = pairs[gpu * m.gpus.size() + to]; pair.bandwidth > 0)
        json["nvlink_pairs"].push_back({{"gpus", {m.gpus[gpu].name, m.gpus[to].name}},
                                        {"links", pair.count},
                                        {"GBps", pair.bandwidth},
                                        {"by", pair.by_switch ? "NVSwitch" : "direct"}});
  }
  for (const Port& port : m.ports) json["network_ports"].push_back(port_json(m, port));
  return json;
}

}  // namespace

std::string topology_json(const Cluster& cluster, const std::string& origin) {
  Json json = {{"origin", origin},
               {"nodes", cluster.nodes.size()},
               {"between_nodes", name(between_nodes(cluster))},
               {"kinds", Json::array()}};
  for (int kind = 0; kind < static_cast<int>(cluster.kinds.size()); kind++)
    json["kinds"].push_back(kind_json(cluster, kind));
  // Names from files may hold bytes that are no UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bitrail::tool
