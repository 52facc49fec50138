// Which node each rank of a communicator is on.
#pragma once

#include "runtime/api/comm.h"

namespace bitrail::api {

// Fills comm->placement, equal on all ranks: BITRAIL_RANKS_PER_NODE consecutive ranks a node where
// it says more than one, else all on one.
Status find_placement(bitrail_comm* comm, Deadline deadline);

}  // namespace bitrail::api
