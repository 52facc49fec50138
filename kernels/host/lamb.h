// Passes of LAMB and 1-bit LAMB (arXiv 2104.06069, DeepSpeed's numerics). Update u, guard and
// rounding are adam.h's; u0 is u without weight decay; d = sqrt(v) + eps.
//
// Sums of squares are taken in float64 in an order that depends on the length alone, not on the
// vector width: element i goes to partial sum i % 8, and the eight are added in pairs. So ranks on
// different processors get the same bits, and with them the same trust ratio.
#pragma once

#include <cstddef>

#include "kernels/host/adam.h"

namespace bitrail::kernels {

double OrderedSquaredSum(const float* x, size_t n);

struct LambSquares {
  double first = 0, second = 0;
};

// Warm-up, first pass: m = beta1*m + (1-beta1)*g; v = beta2*v + (1-beta2)*g*g.
// Returns ||x||^2 and ||u||^2.
LambSquares LambMoments(const AdamFactors& factors, double beta1, double beta2, size_t n,
                        const float* gradient, float* m, float* v, const float* x,
                        bool guard = false);
// Last pass of both phases: x -= step * u; factors.lr is not used.
void LambUpdate(const AdamFactors& factors, float step, size_t n, bool guard, const float* m,
                const float* v, float* x);
// Compression: takes the exchanged momentum, follows the variance that it implies:
//   m' = values * factor * mask (mask null: ones; factor: 1 / scaling coefficient)
//   h = (m' - beta1*m) / (1-beta1);  fresh = beta2*fresh + (1-beta2)*h*h;  m = m'
// Returns the largest d / (sqrt(fresh) + eps), 0 of none; skip_dead: over elements with v != 0.
float LambFresh(const AdamFactors& factors, double beta1, double beta2, float factor, size_t n,
                const float* values, const float* mask, bool skip_dead, float* m, const float* v,
                float* fresh);
// ||u0||^2 and ||u||^2.
LambSquares LambDirections(const AdamFactors& factors, size_t n, bool guard, const float* m,
                           const float* v, const float* x);

double OrderedSquaredSumReference(const float* x, size_t n);
LambSquares LambMomentsReference(const AdamFactors& factors, double beta1, double beta2, size_t n,
                                 const float* gradient, float* m, float* v, const float* x,
                                 bool guard = false);
void LambUpdateReference(const AdamFactors& factors, float step, size_t n, bool guard,
                         const float* m, const float* v, float* x);
float LambFreshReference(const AdamFactors& factors, double beta1, double beta2, float factor,
                         size_t n, const float* values, const float* mask, bool skip_dead, float* m,
                         const float* v, float* fresh);
LambSquares LambDirectionsReference(const AdamFactors& factors, size_t n, bool guard,
                                    const float* m, const float* v, const float* x);

}  // namespace bitrail::kernels
