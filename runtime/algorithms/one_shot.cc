// One-shot allreduce: everybody sends its whole vector to everybody and sums what it gets, in rank
// order. One latency, W-1 messages a rank: for the smallest vectors and worlds.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

Schedule one_shot_allreduce(const Request& request) {
  Request single = request;  // small vectors are not cut
  single.pieces = 1;
  schedule::Builder builder(schedule_name("one_shot", single), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, single);
  const schedule::Range input = all_of(caller.input);
  if (request.world_size == 1) {
    if (!request.in_place) builder.add(schedule::kCopy, {input}, {all_of(caller.output)});
    return builder.finish();
  }
  const auto world = static_cast<uint32_t>(request.world_size);
  const schedule::BufferId arrived = builder.buffer(
      {"arrived", schedule::Role::scratch, schedule::kDataUnit, schedule::kElements, world, 1, 1});
  for (int to : builder.send_order()) builder.send(to, 0, input);
  for (int from : builder.recv_order())
    builder.recv(from, 0, all_of(arrived, static_cast<uint32_t>(from)));
  std::vector<schedule::Range> vectors;
  for (uint32_t rank = 0; rank < world; rank++)
    vectors.push_back(static_cast<int>(rank) == request.rank ? input : all_of(arrived, rank));
  builder.add(schedule::kReduce, std::move(vectors), {all_of(caller.output)});
  return builder.finish();
}

}  // namespace bitrail::algorithms
