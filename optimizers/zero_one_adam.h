// 0/1 Adam (arXiv 2202.06009) with DeepSpeed's rules; u = m / (sqrt(v) + eps) + weight_decay x.
//
//   until the variance is frozen, step t
//     t mod var_interval == 0 (gradient: mean)  Adam
//     otherwise (the rank's own)                G = compressed_allreduce(g) * mask
//                                               m = beta1 m + (1 - beta1) G;  x -= lr u
//     after var_update_scaler variance steps var_interval doubles
//   then (the rank's own)                       m = beta1 m + (1 - beta1) g;  x -= lr u
//     t mod local_interval == 0: sync           A = compressed_allreduce((x - base) (sqrt(v) +
//     eps))
//                                               m = -A / (sum of lr);  x = base + A / (sqrt(v) +
//                                               eps)
//     after local_step_scaler steps local_interval doubles, up to local_step_clipper
//
// base are the parameters of the last sync; between syncs the ranks' x and m differ. At the freeze
// the errors, which were of gradients, start over at zero.
//
// A rank alone decides nothing: in a local step the ranks tell each other whether their gradients
// are finite.
#pragma once

#include <memory>

#include "optimizers/exchange.h"
#include "optimizers/freeze.h"
#include "optimizers/method.h"

namespace bitrail::optimizers {

struct ZeroOneAdam final : Method {
  bitrail_zero_one_t rules = {};
  Exchange exchange;
  Freeze freeze;
  bool guard = true;             // no momentum where the variance is zero
  bool accumulates = false;      // COMPAT_ACCUMULATOR
  bool divides_by_zero = false;  // COMPAT_ZERO_LR
  bool stands_still = false;     // COMPAT_ALONE_STANDS_STILL
  bool restarts = false;         // COMPAT_ZERO_ONE_LOAD

  int64_t var_interval = 1, var_counter = 0, local_interval = 1, local_counter = 0;
  int64_t next_mean = 1;       // the next step wants the mean gradient
  int64_t restart_due = 0;     // COMPAT_ZERO_ONE_LOAD: the intervals start over in the next step
  int64_t synced = 1;          // the parameters are the same on all ranks
  std::vector<double> lr_sum;  // (groups) since the last sync
  // (elements) once frozen: base; with `accumulates` the sum of the local steps.
  std::vector<float> base;

  const char* name() const override { return "0/1 Adam"; }
  bitrail_gradient_t gradient() const override {
    return next_mean != 0 ? BITRAIL_GRADIENT_MEAN : BITRAIL_GRADIENT_LOCAL;
  }
  bool frozen() const override { return freeze.frozen(); }
  int64_t frozen_at() const override { return freeze.frozen_at; }
  bool has_init_call() const override { return true; }
  Status init_call() override { return RunZeros(exchange); }
  Status step(State& state, const Gradient& gradient, int64_t step) override;
  bool replicas_equal() const override { return synced != 0 && !accumulates && !restarts; }
  size_t bytes() const override { return exchange.bytes() + base.size() * sizeof(float); }
  void list(State& state, bool frozen, StateList* list) override;
  const Exchange* compressed() const override { return &exchange; }
  Status loaded(State& state, int64_t step, Loaded rule) override;
};

Status MakeZeroOneAdam(bitrail_comm_t comm, const Options& options, const State& state,
                       std::unique_ptr<Method>* method);

}  // namespace bitrail::optimizers
