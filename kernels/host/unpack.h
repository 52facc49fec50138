// Decoding of packed signs (bit order: pack.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

// acc[i] = (((q_0 w_0) + q_1 w_1) + ...) + acc[i]: the ranks' values summed in rank order in
// float32, then the accumulator (which holds the server error) added. q_r = +1 where bit i of
// bits[r] is set, else -1. weights[r] = scale_r * (1/W). One pass over acc.
void UnpackAverage(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                   float* acc);
// The same without the accumulator: out[i] = sum.
void UnpackSum(const uint8_t* const* bits, const float* weights, int ranks, size_t n, float* out);
// out[i] = bit ? scale : -scale.
void UnpackSigns(const uint8_t* bits, float scale, size_t n, float* out);
// The same for a part of an output that as a whole is too long to be found in a cache by whoever
// reads it next: stores past the caches where `out` is aligned to a vector.
void UnpackSignsStream(const uint8_t* bits, float scale, size_t n, float* out);

void UnpackAverageReference(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                            float* acc);
void UnpackSumReference(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                        float* out);
void UnpackSignsReference(const uint8_t* bits, float scale, size_t n, float* out);

}  // namespace bitrail::kernels
