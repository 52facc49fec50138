#include <algorithm>
#include <numeric>

#include "runtime/engine/onebit.h"

namespace bitrail::engine {
namespace {

constexpr uint64_t kMaxElements = uint64_t{1} << 48;  // keeps every product below 64 bits

uint64_t round_up(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

Status make_layout(int world_size, const std::vector<uint64_t>& counts, uint64_t block, bool l1,
                   OnebitLayout* layout, bool tight) {
  *layout = OnebitLayout();
  layout->world_size = world_size;
  layout->block = block;
  layout->l1 = l1;
  layout->tight = tight;
  layout->tensors = counts.size();
  const uint64_t world = static_cast<uint64_t>(world_size);
  const uint64_t quantum = world * (tight ? uint64_t{8} : std::lcm(world, uint64_t{8}));
  for (uint64_t count : counts) {
    if (count > kMaxElements || layout->elements + count > kMaxElements)
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "more than {} elements in one compressed call",
                     kMaxElements);
    Segment segment;
    segment.count = count;
    segment.padded = round_up(count, quantum);
    segment.chunk = segment.padded / world;
    segment.input_offset = layout->elements;
    segment.chunk_offset = layout->chunk;
    layout->elements += count;
    layout->chunk += segment.chunk;
    layout->segments.push_back(segment);
  }
  const uint64_t rest = block != 0 ? round_up(layout->chunk, block) - layout->chunk : 0;
  if (rest != 0) {
    layout->segments.push_back({.count = 0,
                                .padded = rest * world,
                                .chunk = rest,
                                .input_offset = layout->elements,
                                .chunk_offset = layout->chunk});
    layout->chunk += rest;
  }
  return {};
}

Cut tensor_part(const Segment& segment, uint64_t chunk) {
  return {std::min(chunk * segment.chunk, segment.count),
          std::min((chunk + 1) * segment.chunk, segment.count)};
}

uint64_t scaled_length(const OnebitLayout& layout, const Segment& segment, uint64_t chunk) {
  if (!layout.tight) return segment.chunk;
  const Cut cut = tensor_part(segment, chunk);
  return cut.end - cut.begin;
}

}  // namespace bitrail::engine
