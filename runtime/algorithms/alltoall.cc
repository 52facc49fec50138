// All-to-all: part j of the input straight to rank j, pairs rotated so that no rank is everybody's
// target at once. Not in place.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::Builder;

Schedule direct_alltoall(const Request& request) {
  Builder builder(schedule_name("direct", request), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, request);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    for (int from : builder.recv_order())
      builder.recv(from, piece, part(caller.output, from, request, piece));
    for (int to : builder.send_order())
      builder.send(to, piece, part(caller.input, to, request, piece));
  }
  const auto own = static_cast<uint32_t>(request.rank);
  const auto parts = static_cast<uint32_t>(request.world_size);
  builder.add(schedule::kCopy, {{caller.input, 0, own, parts, 0, 1}},
              {{caller.output, 0, own, parts, 0, 1}});
  return builder.finish();
}

}  // namespace bitrail::algorithms
