// What 0/1 Adam's exchanges compute (equations: zero_one_adam.h).
//
// The accumulator's form is DeepSpeed's arithmetic, for BITRAIL_COMPAT_ACCUMULATOR alone: plain
// loops. It keeps a, the sum of the local steps -lr u, and a sync is
//   x = x - a;  A = compressed_allreduce(a (sqrt(v) + eps));  x = x + A / (sqrt(v) + eps);  a = 0
#pragma once

#include "optimizers/zero_one_adam.h"

namespace bitrail::optimizers {

// Before the freeze: the 1-bit gradient.
struct GradientPass final : Pass {
  ZeroOneAdam& z;
  State& state;
  const Gradient& gradient;
  alignas(64) float tile[kTile];

  GradientPass(ZeroOneAdam& of, State& on, const Gradient& from)
      : z(of), state(on), gradient(from) {}
  void produce(size_t index, size_t begin, size_t count, float* out) override;
  void consume(size_t index, size_t begin, size_t count, const float* values) override;
};

struct SyncPass final : Pass {
  ZeroOneAdam& z;
  State& state;
  const Gradient& gradient;
  alignas(64) float tile[kTile];

  SyncPass(ZeroOneAdam& of, State& on, const Gradient& from) : z(of), state(on), gradient(from) {}
  void produce(size_t index, size_t begin, size_t count, float* out) override;
  void consume(size_t index, size_t begin, size_t count, const float* values) override;
};

struct AccumulatedSyncPass final : Pass {
  ZeroOneAdam& z;
  State& state;
  const Gradient& gradient;
  alignas(64) float tile[kTile];

  AccumulatedSyncPass(ZeroOneAdam& of, State& on, const Gradient& from)
      : z(of), state(on), gradient(from) {}
  void produce(size_t index, size_t begin, size_t count, float* out) override;
  void consume(size_t index, size_t begin, size_t count, const float* values) override;
};

// A local step: kernels::MomentumStep, and the accumulator.
void AccumulatedStep(const Group& group, bool guard, size_t n, const float* gradient, float* m,
                     const float* v, float* x, float* accumulator);

}  // namespace bitrail::optimizers
