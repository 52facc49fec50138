// 1-bit Adam (arXiv 2102.02888) with DeepSpeed's numerics.
//
//   warm-up (gradient: mean over ranks)    Adam
//   compression (gradient: the rank's own) m_local = beta1 m + (1 - beta1) g
//                                          m = compressed_allreduce(m_local) * mask
//                                          x -= lr (m / (sqrt(v) + eps) + weight_decay x), v frozen
//
// One exchange carries all segments, each with its own scales. The new momentum is computed into
// the exchange's tiles and the parameters are updated as the result arrives: there is no buffer for
// either. With one rank there is no exchange: m = m_local * mask.
#pragma once

#include <cstdint>
#include <memory>

#include "optimizers/state.h"

namespace bitrail::optimizers {

struct ErrorStateDestroy {
  void operator()(bitrail_error_state_t errors) const { bitrail_error_state_destroy(errors); }
};

struct OneBitAdam {
  bitrail_comm_t comm = nullptr;  // borrowed
  // Worker and server errors; null with one rank.
  std::unique_ptr<bitrail_error_state, ErrorStateDestroy> errors;
  int64_t freeze_step = 0;
  bool guard = true;    // no momentum where the variance is zero
  bool frozen = false;  // in the compression phase
  bool broken = false;  // an exchange failed half-way: momentum and parameters are of two steps

  // Bytes of the errors.
  size_t bytes() const;
};

// Makes the error state for `state`'s segments. Then, when options.init_call is set, exchanges
// zeros once as DeepSpeed does: collective, changes nothing.
Status MakeOneBitAdam(bitrail_comm_t comm, const bitrail_optimizer_options_t& options, State& state,
                      OneBitAdam* onebit);

// One step in the phase at hand. When an exchange began and failed (not: refused), the optimizer is
// broken and says so from then on.
Status OneBitAdamStep(OneBitAdam& onebit, State& state, const float* gradient);

// After a step that succeeded; `step` counts it and the init call. Always leaves at least one
// warm-up step, since a variance of zero is no divisor.
void MaybeFreeze(OneBitAdam& onebit, int64_t step);

}  // namespace bitrail::optimizers
