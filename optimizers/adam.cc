#include "optimizers/adam.h"

#include <cmath>
#include <limits>

#include "kernels/host/scale.h"

namespace bitrail::optimizers {
namespace {

// The slow path: says where.
Status Refusal(const State& state, const float* gradient) {
  for (size_t index = 0; index < state.segments.size(); index++) {
    const Segment& segment = state.segments[index];
    for (size_t i = 0; i < segment.count; i++) {
      const float g = gradient[segment.offset + i];
      if (!std::isfinite(g)) {
        return failure(BITRAIL_ERR_NOT_FINITE, "the gradient is {} at element {} of segment {}", g,
                       i, index);
      }
    }
  }
  return Status(BITRAIL_ERR_NOT_FINITE,
                "the gradient is so large that its square overflows float32");
}

}  // namespace

Status CheckGradient(const State& state, const float* gradient) {
  const double squares = kernels::SquaredSum(gradient, nullptr, state.elements());
  if (squares <= std::numeric_limits<float>::max()) return {};
  return Refusal(state, gradient);
}

void AdamStep(State& state, const float* gradient) {
  for (const Segment& segment : state.segments) {
    const Group& group = state.groups[segment.group];
    const size_t at = segment.offset;
    kernels::AdamStep(group.factors, group.beta1, group.beta2, segment.count, gradient + at,
                      state.m.data() + at, state.v.data() + at, state.params + at);
  }
}

}  // namespace bitrail::optimizers
