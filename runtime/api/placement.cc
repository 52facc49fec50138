#include "runtime/api/placement.h"

#include <algorithm>

namespace bitrail::api {

Status find_placement(bitrail_comm* comm, Deadline) {
  const int64_t given = comm->settings.ranks_per_node;
  const int64_t size = comm->world.size;
  comm->placement = topology::place_blocks(
      comm->world.size, static_cast<int>(given > 1 ? std::min(given, size) : size));
  return {};
}

}  // namespace bitrail::api
