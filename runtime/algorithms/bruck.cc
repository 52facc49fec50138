// Bruck's all-gather for any world size: in step s a rank sends the 2^s chunks that it has, from
// its own on, to r - 2^s, and gets as many from r + 2^s; the last step only what is missing.
// ceil(log2 W) latencies. Chunks stand at their final place from the start, so what wraps around
// the end of the vector takes a second message.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::Range;

namespace {

// `count` chunks from `first` on, around the end: one range or two.
std::vector<Range> around(schedule::BufferId buffer, int first, int count, int world) {
  const auto chunks = static_cast<uint32_t>(world);
  const int before_end = std::min(count, world - first);
  std::vector<Range> ranges = {
      {buffer, 0, static_cast<uint32_t>(first), chunks, 0, 1, static_cast<uint32_t>(before_end)}};
  if (count > before_end)
    ranges.push_back({buffer, 0, 0, chunks, 0, 1, static_cast<uint32_t>(count - before_end)});
  return ranges;
}

}  // namespace

Schedule bruck_allgather(const Request& request) {
  Request single = request;
  single.pieces = 1;
  const int world = request.world_size;
  const int rank = request.rank;
  Builder builder(schedule_name("bruck", single), rank, world);
  const CallerBuffers caller = caller_buffers(&builder, single);
  if (!request.in_place)
    builder.add(schedule::kCopy, {part(caller.input, rank, single, 0)},
                {part(caller.output, rank, single, 0)});
  uint32_t message = 0;
  for (int have = 1; have < world; have *= 2, message += 2) {
    const int count = std::min(have, world - have);
    const int from = (rank + have) % world;
    const int to = (rank - have + world) % world;
    uint32_t number = message;
    for (const Range& range : around(caller.output, from, count, world))
      builder.recv(from, number++, range);
    number = message;
    for (const Range& range : around(caller.output, rank, count, world))
      builder.send(to, number++, range);
  }
  return builder.finish();
}

}  // namespace bitrail::algorithms
