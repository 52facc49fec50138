// Binomial tree from the root, in pieces: rank v (counted from the root) receives from v without
// its highest bit and sends to v + 2^s for the bits above it. log2 W latencies; a long vector flows
// through the levels piece by piece.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::Builder;

Schedule tree_broadcast(const Request& request) {
  const int world = request.world_size;
  const int relative = (request.rank - request.root + world) % world;
  Builder builder(schedule_name("tree", request), request.rank, world);
  const CallerBuffers caller = caller_buffers(&builder, request);
  const bool root = relative == 0;
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    if (!root)
      builder.recv((binomial_parent(relative) + request.root) % world, piece,
                   whole(caller.output, request, piece));
    const schedule::Range from = whole(root ? caller.input : caller.output, request, piece);
    for (int child : binomial_children(relative, world))
      builder.send((child + request.root) % world, piece, from);
  }
  if (root && !request.in_place)
    builder.add(schedule::kCopy, {all_of(caller.input)}, {all_of(caller.output)});
  return builder.finish();
}

}  // namespace bitrail::algorithms
