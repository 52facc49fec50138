// What stands between the gradient as given and the float32 step: loss scale, overflow, clipping;
// and behind the step: 16-bit parameters from their masters.
//
// Where a loss scale or clipping is on, the ranks exchange two doubles a step: whether some
// gradient is not finite (then all skip), and the sum of their norms, whose mean all clip by.
#pragma once

#include "optimizers/gradient.h"
#include "optimizers/loss_scale.h"

namespace bitrail::optimizers {

struct Precision {
  bitrail_comm_t comm = nullptr;  // borrowed; null: one rank
  bitrail_type_t type = BITRAIL_FLOAT32;
  void* params = nullptr;  // the caller's, when 16-bit
  double clip = 0;
  bool local_clip = false;  // COMPAT_LOCAL_CLIP
  LossScale loss_scale;
};

Precision MakePrecision(bitrail_comm_t comm, const Options& options);

// Sets the gradient's factor. *overflow: not finite on some rank. Without a loss scale that is the
// failure BITRAIL_ERR_NOT_FINITE, on all ranks.
Status Prepare(const Precision& precision, const State& state, bool local, Gradient* gradient,
               bool* overflow);

// Rounds the masters into the caller's parameters.
void StoreParameters(const Precision& precision, const State& state);

}  // namespace bitrail::optimizers
