// A cluster as text, JSON and SVG.
#pragma once

#include <string>

#include "runtime/topology/model.h"
#include "runtime/topology/path.h"

namespace bitrail::tool {

// Tree, matrix of paths, routes to the network, rails, notes. `origin` is where it comes from.
std::string topology_text(const topology::Cluster& cluster, const std::string& origin);
std::string topology_json(const topology::Cluster& cluster, const std::string& origin);
// One picture of each kind of node, with its rails.
std::string topology_svg(const topology::Cluster& cluster, const std::string& origin);

// "8 nodes of 8 GPUs and 8 NICs, 8 rails".
std::string headline(const topology::Cluster& cluster);
// "0-3,8": the nodes of this kind.
std::string nodes_of(const topology::Cluster& cluster, int kind);
// "400 Gbit/s", "unknown speed".
std::string speed_text(double mbps);
// "NV12", "PIX".
std::string cell(topology::Path path, int links);

}  // namespace bitrail::tool
