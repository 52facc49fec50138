#include "optimizers/lamb.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/lamb.h"

namespace bitrail::optimizers {
namespace {

struct Lamb final : Method {
  bitrail_lamb_t rules = {};
  std::vector<double> coefficient;  // (segments)

  const char* name() const override { return "LAMB"; }
  Status step(State& state, const Gradient& gradient, int64_t) override {
    BITRAIL_TRY(CheckGradient(state, gradient));
    for (size_t i = 0; i < state.segments.size(); i++)
      coefficient[i] = LambStep(state, state.segments[i], gradient, rules, false);
    return {};
  }
  const std::vector<double>* coefficients() const override { return &coefficient; }
};

}  // namespace

double LambStep(State& state, const Segment& segment, const Gradient& gradient,
                const bitrail_lamb_t& rules, bool guard) {
  const Group& group = state.group(segment);
  kernels::LambSquares squares;
  ForGradient(gradient, segment, [&](size_t begin, size_t n, const float* g) {
    const size_t at = segment.offset + begin;
    const kernels::LambSquares part =
        kernels::LambMoments(group.factors, group.beta1, group.beta2, n, g, state.m.data() + at,
                             state.v.data() + at, state.params + at, guard);
    squares.first += part.first;
    squares.second += part.second;
  });
  const auto weight = static_cast<float>(std::sqrt(squares.first));
  const auto update = static_cast<float>(std::sqrt(squares.second));
  double c = 1;
  if (weight != 0 && update != 0)
    c = std::clamp<double>(weight / update, rules.min_coeff, rules.max_coeff);
  const size_t at = segment.offset;
  kernels::LambUpdate(group.factors, static_cast<float>(group.lr * c), segment.count, guard,
                      state.m.data() + at, state.v.data() + at, state.params + at);
  return c;
}

std::unique_ptr<Method> MakeLamb(const Options& options, const State& state) {
  auto made = std::make_unique<Lamb>();
  made->rules = options.lamb;
  made->coefficient.assign(state.segments.size(), 1.0);
  return made;
}

}  // namespace bitrail::optimizers
