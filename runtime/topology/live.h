// The machine this process runs on, as hwloc sees it.
#pragma once

#include "runtime/common/status.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

// Names, PCI and NUMA come from hwloc, speeds of network ports from the kernel (0 where it does not
// say). Takes milliseconds to tenths of a second.
Status read_live(Machine* machine);

}  // namespace bitrail::topology
