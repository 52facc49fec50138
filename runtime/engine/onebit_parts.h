// Walking a range of a chunk segment by segment, and reading or writing the caller's values there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/host/convert.h"
#include "runtime/engine/onebit.h"

namespace bitrail::engine {

// Elements [begin, begin + length) of segment `segment`'s part of a chunk.
struct Part {
  size_t segment = 0;
  uint64_t begin = 0;
  uint64_t length = 0;
};

// Calls visit(part, offset) for what [begin, end) of a chunk holds, in order; offset counts from
// `begin`.
template <typename Visit>
void for_each_part(const OnebitLayout& layout, uint64_t begin, uint64_t end, Visit visit) {
  auto after = std::upper_bound(
      layout.segments.begin(), layout.segments.end(), begin,
      [](uint64_t value, const Segment& segment) { return value < segment.chunk_offset; });
  size_t index = after == layout.segments.begin()
                     ? 0
                     : static_cast<size_t>(after - layout.segments.begin()) - 1;
  for (uint64_t at = begin; at < end && index < layout.segments.size(); index++) {
    const Segment& segment = layout.segments[index];
    const uint64_t local = at - segment.chunk_offset;
    if (local >= segment.chunk) continue;  // empty segment
    const uint64_t length = std::min(segment.chunk - local, end - at);
    visit(Part{index, local, length}, at - begin);
    at += length;
  }
}

// The caller's values behind a part: `valid` of its elements are data, the rest is padding.
struct Place {
  uint64_t element = 0;  // inside the tensor
  uint64_t buffer = 0;   // inside the caller's flat buffer
  uint64_t valid = 0;
};

inline Place place(const OnebitCall& call, const Part& part, uint64_t chunk, bool own_only) {
  const Segment& segment = call.layout->segments[part.segment];
  const uint64_t element = chunk * segment.chunk + part.begin;
  const uint64_t valid =
      element >= segment.count ? 0 : std::min(part.length, segment.count - element);
  const uint64_t buffer =
      own_only ? call.own_offset[part.segment] + part.begin : segment.input_offset + element;
  return {element, buffer, valid};
}

// Values [0, n) at `at` in float32: the caller's own memory where it is float32, else `tile`
// filled.
inline const float* load(const OnebitCall& call, const Part& part, const Place& at, uint64_t skip,
                         uint64_t n, float* tile) {
  if (call.produce != nullptr) {
    call.produce(call.user, part.segment, at.element + skip, n, tile);
    return tile;
  }
  const uint64_t first = at.buffer + skip;
  if (call.type == BITRAIL_FLOAT32) return static_cast<const float*>(call.send) + first;
  const uint16_t* raw = static_cast<const uint16_t*>(call.send) + first;
  (call.type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat)(raw, n, tile);
  return tile;
}

// Whether load() needs the tile, so that callers go kTile values at a time.
inline bool needs_tile(const OnebitCall& call) {
  return call.produce != nullptr || call.type != BITRAIL_FLOAT32;
}

// Where n result values go: the caller's memory, or `tile` followed by deliver().
inline float* result(const OnebitCall& call, const Place& at, uint64_t skip, float* tile) {
  if (call.consume != nullptr || call.type != BITRAIL_FLOAT32) return tile;
  return static_cast<float*>(call.recv) + at.buffer + skip;
}

inline void deliver(const OnebitCall& call, const Part& part, const Place& at, uint64_t skip,
                    uint64_t n, const float* values) {
  if (call.consume != nullptr) {
    call.consume(call.user, part.segment, at.element + skip, n, values);
  } else if (call.type != BITRAIL_FLOAT32) {
    uint16_t* raw = static_cast<uint16_t*>(call.recv) + at.buffer + skip;
    (call.type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16)(values, n,
                                                                                     raw);
  }
}

}  // namespace bitrail::engine
