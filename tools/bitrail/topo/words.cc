#include <fmt/core.h>

#include "runtime/topology/rails.h"
#include "tools/bitrail/topo/draw.h"

namespace bitrail::tool {

using topology::Cluster;
using topology::Machine;

namespace {

std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string headline(const Cluster& cluster) {
  if (cluster.kinds.size() > 1) {
    size_t gpus = 0;
    for (int kind : cluster.nodes) gpus += cluster.kinds[static_cast<size_t>(kind)].gpus.size();
    return fmt::format("{} of {}, {}{}", counted(cluster.nodes.size(), "node"),
                       counted(cluster.kinds.size(), "kind"), counted(gpus, "GPU"),
                       cluster.one_nvlink_domain ? ", one NVLink domain" : "");
  }
  const Machine& m = cluster.kinds[0];
  return fmt::format("{} of {} and {}, {}{}", counted(cluster.nodes.size(), "node"),
                     counted(m.gpus.size(), "GPU"), counted(m.ports.size(), "network port"),
                     counted(fast_rails(m).size(), "rail"),
                     cluster.one_nvlink_domain ? ", one NVLink domain" : "");
}

std::string nodes_of(const Cluster& cluster, int kind) {
  std::string text;
  for (size_t i = 0; i < cluster.nodes.size();) {
    if (cluster.nodes[i] != kind) {
      i++;
      continue;
    }
    size_t last = i;
    while (last + 1 < cluster.nodes.size() && cluster.nodes[last + 1] == kind) last++;
    text += fmt::format("{}{}", text.empty() ? "" : ",", i);
    if (last > i) text += fmt::format("-{}", last);
    i = last + 1;
  }
  return text;
}

std::string speed_text(double mbps) {
  if (mbps <= 0) return "unknown speed";
  return mbps >= 1000 ? fmt::format("{:g} Gbit/s", mbps / 1000) : fmt::format("{:g} Mbit/s", mbps);
}

std::string cell(topology::Path path, int links) {
  if (path == topology::Path::loc) return "X";
  if (path == topology::Path::nvl && links > 0) return fmt::format("NV{}", links);
  return std::string(topology::name(path));
}

}  // namespace bitrail::tool
