// 1-bit LAMB (arXiv 2104.06069) with DeepSpeed's numerics.
//
//   warm-up (gradient: mean over ranks)  LAMB; where c != 1, c_avg = coeff_beta c_avg +
//                                        (1 - coeff_beta) c, from 0
//   at the switch                        fresh F = v; s_i = (mean over tensors of r) / r_i with
//                                        r_i = ||m_i|| / sqrt(n_i), so that one scale suits all
//   compression (the rank's own)         m_local = s_i (beta1 m + (1 - beta1) g)
//                                        m' = compressed_allreduce(m_local) / s_i * mask
//                                        h = (m' - beta1 m) / (1 - beta1)
//                                        F = beta2 F + (1 - beta2) h h;  m = m'
//                                        f = max of (sqrt(v) + eps) / (sqrt(F) + eps)
//                                        weight decay: rho = min(1, ||u0|| / ||u||),
//                                        f = f rho + 1 - rho
//                                        f clamped to [factor_min, factor_max] and to
//                                        last f * (1 -+ factor_threshold)
//                                        x -= lr c_avg f u
//
// By default one unit carries everything, one worker scale for all. c_avg starts at 0 without
// correction: after k warm-up steps it is 1 - coeff_beta^k of its value.
#pragma once

#include <memory>

#include "optimizers/exchange.h"
#include "optimizers/freeze.h"
#include "optimizers/method.h"

namespace bitrail::optimizers {

// Of one segment.
struct LambTensor {
  double average = 0;  // c_avg: lamb_coeff_freeze
  double last = 1;     // f of the last step: last_factor
  double scaling = 0;  // s_i; 0: not known yet
};

struct OneBitLamb final : Method {
  bitrail_lamb_t rules = {};
  Exchange exchange;
  Freeze freeze;
  bool guard = true;           // no momentum where the variance is zero
  bool skip_dead = true;       // nor a say in f
  bool fails_at_zero = false;  // COMPAT_ZERO_MOMENTUM
  bool fresh_at_step = false;  // COMPAT_FRESH_FROM_ZERO: F is taken at step freeze_step, or never
  std::vector<float> fresh;    // F
  std::vector<LambTensor> tensors;
  std::vector<double> coefficient;  // c, or c_avg f

  const char* name() const override { return "1-bit LAMB"; }
  bitrail_gradient_t gradient() const override {
    return frozen() ? BITRAIL_GRADIENT_LOCAL : BITRAIL_GRADIENT_MEAN;
  }
  bool frozen() const override { return freeze.frozen(); }
  int64_t frozen_at() const override { return freeze.frozen_at; }
  bool has_init_call() const override { return true; }
  Status init_call() override { return RunZeros(exchange); }
  Status step(State& state, const Gradient& gradient, int64_t step) override;
  size_t bytes() const override { return exchange.bytes() + fresh.size() * sizeof(float); }
  void list(State& state, bool frozen, StateList* list) override;
  const Exchange* compressed() const override { return &exchange; }
  Status loaded(State& state, int64_t step, Loaded rule) override;
  const std::vector<double>* coefficients() const override { return &coefficient; }
};

Status MakeOneBitLamb(bitrail_comm_t comm, const Options& options, const State& state,
                      std::unique_ptr<Method>* method);

}  // namespace bitrail::optimizers
