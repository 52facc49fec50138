// Between float32 and the 16-bit types, round to nearest even; NaN stays NaN, overflow becomes Inf.
// The 16-bit values are raw bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

void HalfToFloat(const uint16_t* in, size_t n, float* out);
void FloatToHalf(const float* in, size_t n, uint16_t* out);
void BFloat16ToFloat(const uint16_t* in, size_t n, float* out);
void FloatToBFloat16(const float* in, size_t n, uint16_t* out);

void HalfToFloatReference(const uint16_t* in, size_t n, float* out);
void FloatToHalfReference(const float* in, size_t n, uint16_t* out);
void BFloat16ToFloatReference(const uint16_t* in, size_t n, float* out);
void FloatToBFloat16Reference(const float* in, size_t n, uint16_t* out);

}  // namespace bitrail::kernels
