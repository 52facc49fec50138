// Adam as the 1-bit optimizers' warm-up phase computes it: no bias correction, eps outside the
// root, decoupled weight decay (equations: kernels/host/adam.h).
#pragma once

#include <memory>

#include "optimizers/method.h"

namespace bitrail::optimizers {

// One step of a segment, or of all. The gradient has been checked.
void AdamStep(State& state, const Segment& segment, const Gradient& gradient);
void AdamStep(State& state, const Gradient& gradient);

std::unique_ptr<Method> MakeAdam();

}  // namespace bitrail::optimizers
