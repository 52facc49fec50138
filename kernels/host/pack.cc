// Sign compression with error feedback (equations: pack.h).
#include "kernels/host/pack.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/pack.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Which of the results a pass writes.
enum Results : unsigned { kBits = 1, kError = 2, kBoth = kBits | kError };

// Encodes one vector: writes the new error where wanted, returns which lanes are plus.
template <bool kHasInput, Results kResults, class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> Encode(D d, const float* x, V plus, V minus, float* error) {
  V b = hn::LoadU(d, error);
  if constexpr (kHasInput) b = hn::Add(hn::LoadU(d, x), b);
  const auto positive = hn::Ge(b, hn::Zero(d));
  if constexpr ((kResults & kError) != 0)
    hn::StoreU(hn::Sub(b, hn::IfThenElse(positive, plus, minus)), d, error);
  return positive;
}

// Eight values, or a vector where that is more: whole bytes. Returns the values done.
template <bool kHasInput, Results kResults, class D, class V = hn::Vec<D>>
HWY_INLINE size_t EncodeBytes(D d, const float* x, V plus, V minus, uint8_t* bits, float* error) {
  const size_t lanes = hn::Lanes(d);
  uint8_t mask[8] = {};  // StoreMaskBits may write 8 bytes
  if (lanes >= 8) {
    const auto positive = Encode<kHasInput, kResults>(d, x, plus, minus, error);
    if constexpr ((kResults & kBits) != 0) {
      hn::StoreMaskBits(d, positive, mask);
      std::memcpy(bits, mask, lanes / 8);
    }
    return lanes;
  }
  unsigned byte = 0;
  for (size_t i = 0; i < 8; i += lanes) {
    const auto positive =
        Encode<kHasInput, kResults>(d, kHasInput ? x + i : x, plus, minus, error + i);
    hn::StoreMaskBits(d, positive, mask);
    byte |= static_cast<unsigned>(mask[0]) << i;
  }
  if constexpr ((kResults & kBits) != 0) *bits = static_cast<uint8_t>(byte);
  return 8;
}

// Whole tiles, then whole bytes; returns the values done. `bits` or the store to `error` may be
// unused.
template <bool kHasInput, Results kResults>
size_t PackTiles(const float* x, float scale, size_t n, uint8_t* bits, float* error, size_t ahead) {
  const hn::CappedTag<float, 64> d;
  const auto plus = hn::Set(d, scale);
  const auto minus = hn::Set(d, -scale);
  constexpr size_t kTile = 64;  // 4 cache lines of values, 8 bytes of bits
  size_t i = 0;
  for (; i + kTile <= n; i += kTile) {
    for (size_t line = i; line < i + kTile; line += 16) {
      if (kHasInput) PrefetchAhead(x + line, ahead);
      PrefetchAhead(error + line, ahead);
    }
    for (size_t j = i; j < i + kTile;) {
      uint8_t* byte = (kResults & kBits) != 0 ? bits + j / 8 : nullptr;
      j += EncodeBytes<kHasInput, kResults>(d, kHasInput ? x + j : x, plus, minus, byte, error + j);
    }
  }
  const hn::CappedTag<float, 8> d8;
  for (; i + 8 <= n; i += 8) {
    EncodeBytes<kHasInput, kResults>(d8, kHasInput ? x + i : x, hn::Set(d8, scale),
                                     hn::Set(d8, -scale),
                                     (kResults & kBits) != 0 ? bits + i / 8 : nullptr, error + i);
  }
  return i;
}

template <Results kResults>
size_t Tiles(const float* x, float scale, size_t n, uint8_t* bits, float* error, size_t ahead) {
  return x != nullptr ? PackTiles<true, kResults>(x, scale, n, bits, error, ahead)
                      : PackTiles<false, kResults>(nullptr, scale, n, bits, error, ahead);
}

size_t Pack(const float* x, float scale, size_t n, uint8_t* bits, float* error, size_t ahead) {
  return Tiles<kBoth>(x, scale, n, bits, error, ahead);
}

size_t Signs(const float* x, const float* error, size_t n, uint8_t* bits) {
  return Tiles<kBits>(x, 0, n, bits, const_cast<float*>(error), kPrefetchBytes);  // only read
}

size_t Rest(const float* x, float scale, size_t n, float* error) {
  return Tiles<kError>(x, scale, n, nullptr, error, kPrefetchBytes);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {

HWY_EXPORT(Pack);
HWY_EXPORT(Signs);
HWY_EXPORT(Rest);

namespace {
const float* behind(const float* x, size_t i) { return x == nullptr ? nullptr : x + i; }
}  // namespace

void PackSigns(const float* x, float scale, size_t n, uint8_t* bits, float* error) {
  PackSignsAhead(x, scale, n, bits, error, kPrefetchBytes);
}

void PackSignsAhead(const float* x, float scale, size_t n, uint8_t* bits, float* error,
                    size_t ahead_bytes) {
  const size_t i = HWY_DYNAMIC_DISPATCH(Pack)(x, scale, n, bits, error, ahead_bytes);
  PackSignsReference(behind(x, i), scale, n - i, bits + i / 8, error + i);
}

void SignBits(const float* x, const float* error, size_t n, uint8_t* bits) {
  const size_t i = HWY_DYNAMIC_DISPATCH(Signs)(x, error, n, bits);
  SignBitsReference(behind(x, i), error + i, n - i, bits + i / 8);
}

void Residual(const float* x, float scale, size_t n, float* error) {
  const size_t i = HWY_DYNAMIC_DISPATCH(Rest)(x, scale, n, error);
  ResidualReference(behind(x, i), scale, n - i, error + i);
}

void PackSignsReference(const float* x, float scale, size_t n, uint8_t* bits, float* error) {
  SignBitsReference(x, error, n, bits);
  ResidualReference(x, scale, n, error);
}

void SignBitsReference(const float* x, const float* error, size_t n, uint8_t* bits) {
  for (size_t i = 0; i < n; i++) {
    const float b = x == nullptr ? error[i] : x[i] + error[i];
    if (i % 8 == 0) bits[i / 8] = 0;
    bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (b >= 0.0f ? 1u << (i % 8) : 0u));
  }
}

void ResidualReference(const float* x, float scale, size_t n, float* error) {
  for (size_t i = 0; i < n; i++) {
    const float b = x == nullptr ? error[i] : x[i] + error[i];
    error[i] = b - (b >= 0.0f ? scale : -scale);
  }
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
