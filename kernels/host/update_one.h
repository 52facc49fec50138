// The update of one value (equations: adam.h): the definition, and the end of the fast loops.
#pragma once

#include <cmath>

#include "kernels/host/adam.h"

namespace bitrail::kernels {

// m / (sqrt(v) + eps); guard: 0 where v == 0.
inline float DirectionOne(const AdamFactors& factors, bool guard, float m, float v) {
  return guard && v == 0 ? 0.0f : m / (std::sqrt(v) + factors.eps);
}

inline float WithDecayOne(const AdamFactors& factors, float u, float x) {
  return factors.weight_decay > 0 ? u + factors.weight_decay * x : u;
}

inline float UpdateOne(const AdamFactors& factors, bool guard, float m, float v, float x) {
  return WithDecayOne(factors, DirectionOne(factors, guard, m, v), x);
}

}  // namespace bitrail::kernels
