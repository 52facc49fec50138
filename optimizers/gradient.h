// The gradient that a step is given: any float type, with a factor, read in float32.
#pragma once

#include <bitrail/bitrail.h>

#include <algorithm>
#include <cstddef>

#include "optimizers/state.h"

namespace bitrail::optimizers {

constexpr size_t kTile = 4096;  // values at a time: 16 KiB, half of a first-level cache

struct Gradient {
  const void* data = nullptr;  // (elements)
  bitrail_type_t type = BITRAIL_FLOAT32;
  float factor = 1;     // multiplied on: 1 / loss scale, clipping
  bool agreed = false;  // all ranks know that all ranks' gradients are finite

  // Whether at() returns the caller's memory as it is.
  bool direct() const { return type == BITRAIL_FLOAT32 && factor == 1; }
  // Elements [offset, offset + n), in the caller's memory or in tile[0..n).
  const float* at(size_t offset, size_t n, float* tile) const;
};

// Calls visit(begin, n, values) for a segment's gradient: once, or for each tile.
template <typename Visit>
void ForGradient(const Gradient& gradient, const Segment& segment, Visit visit) {
  alignas(64) float tile[kTile];
  const size_t stride = gradient.direct() ? std::max<size_t>(segment.count, 1) : kTile;
  for (size_t begin = 0; begin < segment.count; begin += stride) {
    const size_t n = std::min(stride, segment.count - begin);
    visit(begin, n, gradient.at(segment.offset + begin, n, tile));
  }
}

// Sum of squares of the whole gradient, the factor included; NaN or Inf where an element is.
double SquaredSum(const State& state, const Gradient& gradient);

// Refuses a gradient with NaN or Inf, or so large that its square would overflow the float32
// variance: BITRAIL_ERR_NOT_FINITE naming segment and element.
Status CheckGradient(const State& state, const Gradient& gradient);

}  // namespace bitrail::optimizers
