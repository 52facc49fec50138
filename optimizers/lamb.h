// LAMB as 1-bit LAMB's warm-up phase computes it: no bias correction, eps outside the root.
//
//   m, v as Adam;  u = m / (sqrt(v) + eps) + weight_decay x
//   c = clamp(||x|| / ||u||, min_coeff, max_coeff), 1 where a norm is zero;  x -= lr c u
#pragma once

#include <memory>

#include "optimizers/method.h"

namespace bitrail::optimizers {

// One step of a segment; the gradient has been checked. Returns c. `guard` as in adam.h.
double LambStep(State& state, const Segment& segment, const Gradient& gradient,
                const bitrail_lamb_t& rules, bool guard);

std::unique_ptr<Method> MakeLamb(const Options& options, const State& state);

}  // namespace bitrail::optimizers
