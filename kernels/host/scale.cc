// Norms of b = x + e (definitions: scale.h).
#include "kernels/host/scale.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/scale.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The square of a float32 is exact in float64 and far from its overflow, so finite input gives a
// finite sum, and a fused multiply-add gives the same as a separate one.
struct Squared {
  template <class D, class V>
  static HWY_INLINE V Accumulate(D, V b, V sum) {
    return hn::MulAdd(b, b, sum);
  }
};
struct Absolute {
  template <class D, class V>
  static HWY_INLINE V Accumulate(D, V b, V sum) {
    return hn::Add(hn::Abs(b), sum);
  }
};

template <class Norm, bool kHasError, class D, class V = hn::Vec<D>>
HWY_INLINE V AddOne(D d, const float* x, const float* error, size_t i, V sum) {
  const hn::Rebind<float, D> df;
  auto b = hn::LoadU(df, x + i);
  if constexpr (kHasError) b = hn::Add(b, hn::LoadU(df, error + i));
  return Norm::Accumulate(d, hn::PromoteTo(d, b), sum);
}

// Four accumulators hide the latency of the addition; a tile is a multiple of a cache line.
template <class Norm, bool kHasError>
double SumAll(const float* x, const float* error, size_t n) {
  const hn::ScalableTag<double> d;
  const size_t lanes = hn::Lanes(d);
  const size_t tile = lanes * 4 > 16 ? lanes * 4 : 16;
  auto sum0 = hn::Zero(d), sum1 = hn::Zero(d), sum2 = hn::Zero(d), sum3 = hn::Zero(d);
  size_t i = 0;
  for (; i + tile <= n; i += tile) {
    for (size_t line = i; line < i + tile; line += 16) {
      PrefetchAhead(x + line);
      if (kHasError) PrefetchAhead(error + line);
    }
    for (size_t j = i; j < i + tile; j += 4 * lanes) {
      sum0 = AddOne<Norm, kHasError>(d, x, error, j, sum0);
      sum1 = AddOne<Norm, kHasError>(d, x, error, j + lanes, sum1);
      sum2 = AddOne<Norm, kHasError>(d, x, error, j + 2 * lanes, sum2);
      sum3 = AddOne<Norm, kHasError>(d, x, error, j + 3 * lanes, sum3);
    }
  }
  const auto sum = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  const double main = hn::GetLane(hn::SumOfLanes(d, sum));
  const float* rest = kHasError ? error + i : nullptr;
  constexpr bool kSquared = std::is_same_v<Norm, Squared>;
  return main + (kSquared ? SquaredSumReference(x + i, rest, n - i)
                          : AbsoluteSumReference(x + i, rest, n - i));
}

double SumSquares(const float* x, const float* error, size_t n) {
  return error == nullptr ? SumAll<Squared, false>(x, error, n)
                          : SumAll<Squared, true>(x, error, n);
}

double SumAbsolutes(const float* x, const float* error, size_t n) {
  return error == nullptr ? SumAll<Absolute, false>(x, error, n)
                          : SumAll<Absolute, true>(x, error, n);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {

HWY_EXPORT(SumSquares);
HWY_EXPORT(SumAbsolutes);

double SquaredSum(const float* x, const float* error, size_t n) {
  return HWY_DYNAMIC_DISPATCH(SumSquares)(x, error, n);
}

double AbsoluteSum(const float* x, const float* error, size_t n) {
  return HWY_DYNAMIC_DISPATCH(SumAbsolutes)(x, error, n);
}

double SquaredSumReference(const float* x, const float* error, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    const double b = error == nullptr ? x[i] : x[i] + error[i];
    sum += b * b;
  }
  return sum;
}

double AbsoluteSumReference(const float* x, const float* error, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) {
    const double b = error == nullptr ? x[i] : x[i] + error[i];
    sum += std::fabs(b);
  }
  return sum;
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
