// Sign compression with error feedback, one pass:
//   b = x + e;  bit = b >= 0 (so +0 and -0 count as plus);  e = b - (bit ? s : -s)
// Bit i of the result is bit i % 8 of byte i / 8 (least significant first); unused bits of the last
// byte are zero. Equations: 1-bit Adam, arXiv 2102.02888, with the scale chosen by the caller
// (scale.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

// Reads x (n) and error (n), writes bits (ceil(n/8) bytes) and error. x may equal error only if it
// is null: error is accumulated in place, x is not written. x null means zeros (padding: b = e).
void PackSigns(const float* x, float scale, size_t n, uint8_t* bits, float* error);
// The same, prefetching `ahead_bytes` ahead instead of a default. For values that were just read (a
// block whose scale was taken a moment ago) the block's length is right: it fetches the next block
// while this one is packed.
void PackSignsAhead(const float* x, float scale, size_t n, uint8_t* bits, float* error,
                    size_t ahead_bytes);
// The two halves of it, for bits that leave before anything may change: bits of b = x + e, then
// later e = b - (bit ? s : -s) from the same x and e.
void SignBits(const float* x, const float* error, size_t n, uint8_t* bits);
void Residual(const float* x, float scale, size_t n, float* error);

void PackSignsReference(const float* x, float scale, size_t n, uint8_t* bits, float* error);
void SignBitsReference(const float* x, const float* error, size_t n, uint8_t* bits);
void ResidualReference(const float* x, float scale, size_t n, float* error);

}  // namespace bitrail::kernels
