// Fused element-wise Adam steps, no bias correction, eps outside the root, decoupled weight decay
// (added to the update before lr), all in float32 with separate multiply and add (no contraction),
// so that results match plain loops bit for bit:
//   u = m / (sqrt(v) + eps);  if (weight_decay > 0) u += weight_decay * x;  x -= lr * u
#pragma once

#include <cstddef>

namespace bitrail::kernels {

struct AdamFactors {
  float lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;
};

// Warm-up: m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g; then the update. 1-beta is
// computed in double, then rounded. beta1, beta2 come as doubles for that reason. `guard` as below:
// momentum where v is still 0 is left over from a compressed step.
void AdamStep(const AdamFactors& factors, double beta1, double beta2, size_t n,
              const float* gradient, float* m, float* v, float* x, bool guard = false);
// out = beta1*m + (1-beta1)*g. out may equal m.
void Momentum(double beta1, size_t n, const float* gradient, const float* m, float* out);
// Compression phase after the exchange: m = values * mask (mask null: ones), then the update with v
// untouched. Elements with v == 0 never had a gradient, and m / eps would throw their x far away:
// when `guard` is set, u = 0 for them before the weight decay (the momentum is stored all the
// same). values may equal m. `stream`, for long state (stream.h): m is written past the caches,
// since with ordinary stores every line of it is fetched first.
void OneBitAdamStep(const AdamFactors& factors, size_t n, const float* values, const float* mask,
                    bool guard, float* m, const float* v, float* x, bool stream = false);

void AdamStepReference(const AdamFactors& factors, double beta1, double beta2, size_t n,
                       const float* gradient, float* m, float* v, float* x, bool guard = false);
void MomentumReference(double beta1, size_t n, const float* gradient, const float* m, float* out);
void OneBitAdamStepReference(const AdamFactors& factors, size_t n, const float* values,
                             const float* mask, bool guard, float* m, const float* v, float* x);

}  // namespace bitrail::kernels
