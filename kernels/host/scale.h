// Scale pass of the sign compressor: norms of b = x + e in one read of both arrays.
#pragma once

#include <cstddef>

namespace bitrail::kernels {

// Sum of b[i]^2 and of |b[i]| over i < n, b = x + e (float32 sum), accumulated in float64. `error`
// may be null (zeros). Any NaN or Inf in b makes the result NaN or Inf: that is the finiteness
// check.
double SquaredSum(const float* x, const float* error, size_t n);
double AbsoluteSum(const float* x, const float* error, size_t n);
// The definitions, plain loops.
double SquaredSumReference(const float* x, const float* error, size_t n);
double AbsoluteSumReference(const float* x, const float* error, size_t n);

}  // namespace bitrail::kernels
