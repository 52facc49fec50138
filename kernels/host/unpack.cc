// Decoding of packed signs (definitions: unpack.h).
#include "kernels/host/unpack.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/unpack.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/prefetch.h"
#include "kernels/host/stream.h"
#include "kernels/host/unpack_range.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The decoded values of the vector that starts at value `first`, a multiple of 8 or, of smaller
// vectors, of their lanes: weight where the bit is set, else -weight.
template <class D>
HWY_INLINE hn::Vec<D> DecodeVector(D d, const uint8_t* bits, size_t first, float weight) {
  const size_t lanes = hn::Lanes(d);
  uint8_t mask[8] = {};  // LoadMaskBits may read 8 bytes
  if (lanes >= 8) {
    std::memcpy(mask, bits + first / 8, lanes / 8);
  } else {
    mask[0] = static_cast<uint8_t>(bits[first / 8] >> (first % 8));
  }
  return hn::IfThenElse(hn::LoadMaskBits(d, mask), hn::Set(d, weight), hn::Set(d, -weight));
}

// The decoded values of vector `part` of four that start at value `begin` (a multiple of 8).
#if HWY_TARGET == HWY_AVX2
// Without mask registers: one broadcast serves four vectors, a shift brings each lane's bit to the
// sign's place, where it flips -weight. Half the work of building a mask and choosing.
template <int part, class D>
HWY_INLINE hn::Vec<D> Decode(D d, const uint8_t* bits, size_t begin, float weight) {
  const hn::RebindToUnsigned<D> du;
  uint32_t word;
  std::memcpy(&word, bits + begin / 8, sizeof word);
  const auto places = hn::Sub(hn::Set(du, 31u - 8 * part), hn::Iota(du, 0));
  const auto plus = hn::BitCast(d, hn::Shl(hn::Set(du, word), places));
  return hn::Xor(hn::And(plus, hn::SignBit(d)), hn::Set(d, -weight));
}
#else
template <int part, class D>
HWY_INLINE hn::Vec<D> Decode(D d, const uint8_t* bits, size_t begin, float weight) {
  return DecodeVector(d, bits, begin + part * hn::Lanes(d), weight);
}
#endif

template <bool kStream, class D>
HWY_INLINE void Put(hn::Vec<D> v, D d, float* out) {
  if constexpr (kStream) {
    hn::Stream(v, d, out);
  } else {
    hn::StoreU(v, d, out);
  }
}

// Whole bytes of bits that are too few for SumMost's tiles: from value i on. Returns the values
// done.
template <bool kAdd>
size_t SumBytes(const uint8_t* const* bits, const float* weights, int ranks, size_t i, size_t n,
                float* acc) {
  const hn::CappedTag<float, 8> d;
  const size_t lanes = hn::Lanes(d);
  for (; i + 8 <= n; i += 8) {
    for (size_t j = i; j < i + 8; j += lanes) {
      auto sum = DecodeVector(d, bits[0], j, weights[0]);
      for (int rank = 1; rank < ranks; rank++)
        sum = hn::Add(sum, DecodeVector(d, bits[rank], j, weights[rank]));
      if constexpr (kAdd) sum = hn::Add(sum, hn::LoadU(d, acc + j));
      hn::StoreU(sum, d, acc + j);
    }
  }
  return i;
}

// Four vectors at a time: their sums stay in registers while the ranks pass by.
template <bool kAdd, bool kStream>
void SumMost(const uint8_t* const* bits, const float* weights, int ranks, size_t n, float* acc) {
  const hn::CappedTag<float, 64> d;
  const size_t lanes = hn::Lanes(d);
  const size_t tile = lanes * 4 > 16 ? lanes * 4 : 16;
  size_t i = 0;
  for (; i + tile <= n; i += tile) {
    for (size_t line = i; line < i + tile; line += 16) {
      if (kAdd) PrefetchAhead(acc + line, 2 * kPrefetchBytes);
    }
    for (size_t j = i; j < i + tile; j += 4 * lanes) {
      auto sum0 = Decode<0>(d, bits[0], j, weights[0]);
      auto sum1 = Decode<1>(d, bits[0], j, weights[0]);
      auto sum2 = Decode<2>(d, bits[0], j, weights[0]);
      auto sum3 = Decode<3>(d, bits[0], j, weights[0]);
      for (int rank = 1; rank < ranks; rank++) {
        sum0 = hn::Add(sum0, Decode<0>(d, bits[rank], j, weights[rank]));
        sum1 = hn::Add(sum1, Decode<1>(d, bits[rank], j, weights[rank]));
        sum2 = hn::Add(sum2, Decode<2>(d, bits[rank], j, weights[rank]));
        sum3 = hn::Add(sum3, Decode<3>(d, bits[rank], j, weights[rank]));
      }
      if constexpr (kAdd) {
        sum0 = hn::Add(sum0, hn::LoadU(d, acc + j));
        sum1 = hn::Add(sum1, hn::LoadU(d, acc + j + lanes));
        sum2 = hn::Add(sum2, hn::LoadU(d, acc + j + 2 * lanes));
        sum3 = hn::Add(sum3, hn::LoadU(d, acc + j + 3 * lanes));
      }
      Put<kStream>(sum0, d, acc + j);
      Put<kStream>(sum1, d, acc + j + lanes);
      Put<kStream>(sum2, d, acc + j + 2 * lanes);
      Put<kStream>(sum3, d, acc + j + 3 * lanes);
    }
  }
  if (kStream) hwy::FlushStream();
  i = SumBytes<kAdd>(bits, weights, ranks, i, n, acc);
  UnpackRange(bits, weights, ranks, i, n, kAdd, acc);
}

void Average(const uint8_t* const* bits, const float* weights, int ranks, size_t n, float* acc) {
  SumMost<true, false>(bits, weights, ranks, n, acc);
}

void Sum(const uint8_t* const* bits, const float* weights, int ranks, size_t n, float* out,
         bool stream) {
  const hn::CappedTag<float, 64> d;
  const bool aligned = reinterpret_cast<uintptr_t>(out) % (hn::Lanes(d) * sizeof(float)) == 0;
  if (stream && aligned) {
    SumMost<false, true>(bits, weights, ranks, n, out);
  } else {
    SumMost<false, false>(bits, weights, ranks, n, out);
  }
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {
HWY_EXPORT(Average);
HWY_EXPORT(Sum);

void UnpackAverage(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                   float* acc) {
  HWY_DYNAMIC_DISPATCH(Average)(bits, weights, ranks, n, acc);
}

void UnpackSum(const uint8_t* const* bits, const float* weights, int ranks, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Sum)(bits, weights, ranks, n, out, n >= kStreamFrom);
}

void UnpackSigns(const uint8_t* bits, float scale, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Sum)(&bits, &scale, 1, n, out, n >= kStreamFrom);
}

void UnpackSignsStream(const uint8_t* bits, float scale, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Sum)(&bits, &scale, 1, n, out, true);
}

void UnpackAverageReference(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                            float* acc) {
  UnpackRange(bits, weights, ranks, 0, n, true, acc);
}

void UnpackSumReference(const uint8_t* const* bits, const float* weights, int ranks, size_t n,
                        float* out) {
  UnpackRange(bits, weights, ranks, 0, n, false, out);
}

void UnpackSignsReference(const uint8_t* bits, float scale, size_t n, float* out) {
  for (size_t i = 0; i < n; i++) out[i] = (bits[i / 8] >> (i % 8)) & 1 ? scale : -scale;
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
