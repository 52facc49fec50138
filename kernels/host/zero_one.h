// Fused steps of 0/1 Adam (arXiv 2202.06009, DeepSpeed's numerics) once the variance v is fixed.
// Update u, guard and rounding are adam.h's; d = sqrt(v) + eps. `base`: the parameters of the last
// sync, equal on all ranks, from which every rank took its own local steps.
#pragma once

#include <cstddef>

#include "kernels/host/adam.h"

namespace bitrail::kernels {

// m = beta1*m + (1-beta1)*g*mask; x -= lr*u. The step of a 1-bit gradient g, and (mask null: ones)
// a local step.
void MomentumStep(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
                  const float* mask, bool guard, float* m, const float* v, float* x);
// What a sync sends, the local step of this gradient included, nothing written but out:
//   m' = beta1*m + (1-beta1)*g;  x' = x - lr*u(m');  out = (x' - base) * d
void SyncValue(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
               const float* m, const float* v, const float* x, const float* base, bool guard,
               float* out);
// What it does with the ranks' mean A = values * mask (mask null: ones):
//   m = A * factor (factor = -1 / sum of lr);  x = base + A / d;  base = x
// guard: where v == 0, x' of the weight decay alone, which is the same on all ranks.
void SyncStep(const AdamFactors& factors, float factor, size_t n, const float* values,
              const float* mask, bool guard, float* m, const float* v, float* x, float* base);

void MomentumStepReference(const AdamFactors& factors, double beta1, size_t n,
                           const float* gradient, const float* mask, bool guard, float* m,
                           const float* v, float* x);
void SyncValueReference(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
                        const float* m, const float* v, const float* x, const float* base,
                        bool guard, float* out);
void SyncStepReference(const AdamFactors& factors, float factor, size_t n, const float* values,
                       const float* mask, bool guard, float* m, const float* v, float* x,
                       float* base);

}  // namespace bitrail::kernels
