// A communicator's links from the model of the machines.
#pragma once

#include "plugin/tuner/cost.h"
#include "runtime/config/settings.h"
#include "runtime/topology/model.h"

namespace bitrail::plugin::tuner {

// Bandwidths of the slowest kind of node. `ranks` and `nodes` are at least 1, nodes <= ranks.
System system_of(const topology::Cluster& cluster, int64_t ranks, int64_t nodes);

// The same of the topology that the settings name (topology/read.h), which is read once a process.
// *origin says where it comes from. Where there is none to be had, *system has the links that
// System begins with.
Status find_system(const config::Settings& settings, int64_t ranks, int64_t nodes, System* system,
                   std::string* origin);

}  // namespace bitrail::plugin::tuner
