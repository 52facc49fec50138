#include "optimizers/adam.h"

namespace bitrail::optimizers {
namespace {

struct Adam final : Method {
  const char* name() const override { return "Adam"; }
  Status step(State& state, const Gradient& gradient, int64_t) override {
    BITRAIL_TRY(CheckGradient(state, gradient));
    AdamStep(state, gradient, false);
    return {};
  }
};

}  // namespace

void AdamStep(State& state, const Gradient& gradient, bool guard) {
  for (const Segment& segment : state.segments) {
    const Group& group = state.group(segment);
    ForGradient(gradient, segment, [&](size_t begin, size_t n, const float* g) {
      const size_t at = segment.offset + begin;
      kernels::AdamStep(group.factors, group.beta1, group.beta2, n, g, state.m.data() + at,
                        state.v.data() + at, state.params + at, guard);
    });
  }
}

std::unique_ptr<Method> MakeAdam() { return std::make_unique<Adam>(); }

}  // namespace bitrail::optimizers
