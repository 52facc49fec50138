// Dissemination barrier: in round k a rank signals r + 2^k and waits for r - 2^k; a signal says
// that all who signalled its sender before have arrived. ceil(log2 W) rounds, messages of 0 bytes.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

Schedule dissemination_barrier(const Request& request) {
  schedule::Builder builder(schedule_name("dissemination", request), request.rank,
                            request.world_size);
  const int world = request.world_size;
  std::vector<schedule::OperationId> heard;
  uint32_t round = 0;
  for (int distance = 1; distance < world; distance *= 2, round++) {
    builder.send_signal((request.rank + distance) % world, round, heard);
    heard.push_back(builder.recv_signal((request.rank - distance + world) % world, round));
  }
  return builder.finish();
}

}  // namespace bitrail::algorithms
