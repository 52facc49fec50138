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

// Encodes one vector: writes the new error, returns which lanes are plus.
template <bool kHasInput, class D, class V = hn::Vec<D>>
HWY_INLINE hn::Mask<D> Encode(D d, const float* x, V plus, V minus, float* error) {
  V b = hn::LoadU(d, error);
  if constexpr (kHasInput) b = hn::Add(hn::LoadU(d, x), b);
  const auto positive = hn::Ge(b, hn::Zero(d));
  hn::StoreU(hn::Sub(b, hn::IfThenElse(positive, plus, minus)), d, error);
  return positive;
}

// Eight values, or a vector where that is more: whole bytes. Returns the values done.
template <bool kHasInput, class D, class V = hn::Vec<D>>
HWY_INLINE size_t EncodeBytes(D d, const float* x, V plus, V minus, uint8_t* bits, float* error) {
  const size_t lanes = hn::Lanes(d);
  uint8_t mask[8] = {};  // StoreMaskBits may write 8 bytes
  if (lanes >= 8) {
    hn::StoreMaskBits(d, Encode<kHasInput>(d, x, plus, minus, error), mask);
    std::memcpy(bits, mask, lanes / 8);
    return lanes;
  }
  unsigned byte = 0;
  for (size_t i = 0; i < 8; i += lanes) {
    hn::StoreMaskBits(d, Encode<kHasInput>(d, kHasInput ? x + i : x, plus, minus, error + i), mask);
    byte |= static_cast<unsigned>(mask[0]) << i;
  }
  *bits = static_cast<uint8_t>(byte);
  return 8;
}

template <bool kHasInput>
void PackAll(const float* x, float scale, size_t n, uint8_t* bits, float* error, size_t ahead) {
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
      j += EncodeBytes<kHasInput>(d, kHasInput ? x + j : x, plus, minus, bits + j / 8, error + j);
    }
  }
  PackSignsReference(kHasInput ? x + i : x, scale, n - i, bits + i / 8, error + i);
}

void Pack(const float* x, float scale, size_t n, uint8_t* bits, float* error, size_t ahead) {
  if (x != nullptr) {
    PackAll<true>(x, scale, n, bits, error, ahead);
  } else {
    PackAll<false>(nullptr, scale, n, bits, error, ahead);
  }
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {

HWY_EXPORT(Pack);

void PackSigns(const float* x, float scale, size_t n, uint8_t* bits, float* error) {
  HWY_DYNAMIC_DISPATCH(Pack)(x, scale, n, bits, error, kPrefetchBytes);
}

void PackSignsAhead(const float* x, float scale, size_t n, uint8_t* bits, float* error,
                    size_t ahead_bytes) {
  HWY_DYNAMIC_DISPATCH(Pack)(x, scale, n, bits, error, ahead_bytes);
}

void PackSignsReference(const float* x, float scale, size_t n, uint8_t* bits, float* error) {
  for (size_t i = 0; i < n; i++) {
    const float b = x == nullptr ? error[i] : x[i] + error[i];
    const bool positive = b >= 0.0f;
    if (i % 8 == 0) bits[i / 8] = 0;
    bits[i / 8] = static_cast<uint8_t>(bits[i / 8] | (positive ? 1u << (i % 8) : 0u));
    error[i] = b - (positive ? scale : -scale);
  }
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
