// A topology from wherever it is: a file in any of the forms, or this machine.
#pragma once

#include "runtime/common/status.h"
#include "runtime/config/settings.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

// What `text` is says its first element: <system> NCCL's XML, <topology> hwloc's; without '<' in
// front it is a description (description.h). `name` begins the messages.
Status read_text(std::string text, const std::string& name, Cluster* cluster);
Status read_file(const std::string& path, Cluster* cluster);

// BITRAIL_TOPO_FILE, otherwise NCCL_TOPO_FILE, otherwise this machine. *origin says which.
Status read_topology(const config::Settings& settings, Cluster* cluster, std::string* origin);

}  // namespace bitrail::topology
