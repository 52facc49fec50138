#include "optimizers/gradient.h"

#include <cmath>
#include <limits>

#include "kernels/host/convert.h"
#include "kernels/host/scale.h"

namespace bitrail::optimizers {
namespace {

// The slow path: says where.
Status Refusal(const State& state, const Gradient& gradient) {
  Status status(BITRAIL_ERR_NOT_FINITE,
                "the gradient is so large that its square overflows float32");
  for (size_t index = state.segments.size(); index-- > 0;) {
    ForGradient(gradient, state.segments[index], [&](size_t begin, size_t n, const float* g) {
      for (size_t i = n; i-- > 0;) {
        if (std::isfinite(g[i])) continue;
        status = failure(BITRAIL_ERR_NOT_FINITE, "the gradient is {} at element {} of segment {}",
                         g[i], begin + i, index);
      }
    });
  }
  return status;
}

}  // namespace

const float* Gradient::at(size_t offset, size_t n, float* tile) const {
  if (direct()) return static_cast<const float*>(data) + offset;
  if (type == BITRAIL_FLOAT32) {
    const float* from = static_cast<const float*>(data) + offset;
    for (size_t i = 0; i < n; i++) tile[i] = from[i] * factor;
    return tile;
  }
  const uint16_t* from = static_cast<const uint16_t*>(data) + offset;
  (type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat)(from, n, tile);
  if (factor != 1) {
    for (size_t i = 0; i < n; i++) tile[i] *= factor;
  }
  return tile;
}

double SquaredSum(const State& state, const Gradient& gradient) {
  if (gradient.direct()) {
    return kernels::SquaredSum(static_cast<const float*>(gradient.data), nullptr, state.elements());
  }
  double squares = 0;
  for (const Segment& segment : state.segments) {
    ForGradient(gradient, segment, [&](size_t, size_t n, const float* g) {
      squares += kernels::SquaredSum(g, nullptr, n);
    });
  }
  return squares;
}

Status CheckGradient(const State& state, const Gradient& gradient) {
  if (SquaredSum(state, gradient) <= std::numeric_limits<float>::max()) return {};
  return Refusal(state, gradient);
}

}  // namespace bitrail::optimizers
