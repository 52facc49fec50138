// Adam as the 1-bit optimizers' warm-up phase computes it: no bias correction, eps outside the
// root, decoupled weight decay (equations: kernels/host/adam.h).
#pragma once

#include <memory>

#include "optimizers/method.h"

namespace bitrail::optimizers {

// One step of all segments. The gradient has been checked. `guard`: no momentum where the variance
// is zero (what a compressed step left there).
void AdamStep(State& state, const Gradient& gradient, bool guard);

std::unique_ptr<Method> MakeAdam();

}  // namespace bitrail::optimizers
