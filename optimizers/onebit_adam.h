// 1-bit Adam (arXiv 2102.02888) with DeepSpeed's numerics.
//
//   warm-up (gradient: mean over ranks)    Adam
//   compression (gradient: the rank's own) m_local = beta1 m + (1 - beta1) g
//                                          m = compressed_allreduce(m_local) * mask
//                                          x -= lr (m / (sqrt(v) + eps) + weight_decay x), v frozen
//   groups with non_freeze, compression    Adam on the mean gradient, which is taken here
//
// One exchange carries all segments. The new momentum is computed into the exchange's tiles and the
// parameters are updated as the result arrives: there is no buffer for either. With one rank there
// is no exchange: m = m_local * mask.
#pragma once

#include <memory>

#include "optimizers/exchange.h"
#include "optimizers/freeze.h"
#include "optimizers/method.h"

namespace bitrail::optimizers {

struct OneBitAdam final : Method {
  Exchange exchange;
  Freeze freeze;
  bool guard = true;  // no momentum where the variance is zero
  // Mean gradients of the non_freeze groups, one after the other; made at the first use.
  std::vector<float> full;

  const char* name() const override { return "1-bit Adam"; }
  bitrail_gradient_t gradient() const override {
    return frozen() ? BITRAIL_GRADIENT_LOCAL : BITRAIL_GRADIENT_MEAN;
  }
  bool frozen() const override { return freeze.frozen(); }
  int64_t frozen_at() const override { return freeze.frozen_at; }
  bool has_init_call() const override { return true; }
  Status init_call() override { return RunZeros(exchange); }
  Status step(State& state, const Gradient& gradient, int64_t step) override;
  size_t bytes() const override { return exchange.bytes() + full.size() * sizeof(float); }
  void list(State& state, bool frozen, StateList* list) override;
  const Exchange* compressed() const override { return &exchange; }
  Status loaded(State& state, int64_t step, Loaded rule) override;
};

// Always leaves at least one warm-up step, since a variance of zero is no divisor.
Status MakeOneBitAdam(bitrail_comm_t comm, const Options& options, const State& state,
                      std::unique_ptr<Method>* method);

// Names the errors in a list: "worker_error" and "server_error", the rank's own.
void ListErrors(Exchange& exchange, StateList* list);

}  // namespace bitrail::optimizers
