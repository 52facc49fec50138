// Adam as the 1-bit optimizers' warm-up phase computes it: no bias correction, eps outside the
// root, decoupled weight decay (equations: kernels/host/adam.h).
#pragma once

#include "optimizers/state.h"

namespace bitrail::optimizers {

// Refuses a gradient (elements) with NaN or Inf, or so large that its square would overflow the
// float32 variance: BITRAIL_ERR_NOT_FINITE naming segment and element.
Status CheckGradient(const State& state, const float* gradient);

// One step of all segments. The gradient has been checked.
void AdamStep(State& state, const float* gradient);

}  // namespace bitrail::optimizers
