// Passes of LAMB (equations and the order of sums: lamb.h). No MulAdd in float32: it would change
// the last bit. In float64 a fused one gives the same, as the square of a float32 is exact there.
#include "kernels/host/lamb.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/lamb.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/host/ordered_sum.h"
#include "kernels/host/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {

constexpr size_t kTile = 512;  // values of u kept between their making and their squaring

// Adds the squares of x[0..n), n a multiple of 8, to the partial sums.
void AddSquares(const float* x, size_t n, double* partial) {
  const hn::CappedTag<double, kPartialSums> d;
  const hn::Rebind<float, decltype(d)> df;
  const size_t lanes = hn::Lanes(d);
  for (size_t first = 0; first < kPartialSums; first += lanes) {
    auto sum = hn::LoadU(d, partial + first);
    for (size_t i = first; i < n; i += kPartialSums) {
      const auto b = hn::PromoteTo(d, hn::LoadU(df, x + i));
      sum = hn::MulAdd(b, b, sum);
    }
    hn::StoreU(sum, d, partial + first);
  }
}

double OrderedSum(const float* x, size_t n) {
  OrderedSum8 sum;
  const size_t whole = n / kPartialSums * kPartialSums;
  for (size_t i = 0; i < whole; i += kTile)
    AddSquares(x + i, std::min(kTile, whole - i), sum.partial);
  for (size_t i = whole; i < n; i++) sum.Add(i, x[i]);
  return sum.Total();
}

// Sums the squares of what make(i, count, out) gives for each tile and of what it returns: make
// fills out[0..count) for elements from i on.
template <class Make>
void SumTiles(size_t n, OrderedSum8* sum, Make make) {
  HWY_ALIGN float tile[kTile];
  for (size_t i = 0; i < n; i += kTile) {
    const size_t count = std::min(kTile, n - i);
    make(i, count, tile);
    const size_t whole = count / kPartialSums * kPartialSums;
    AddSquares(tile, whole, sum->partial);
    for (size_t j = whole; j < count; j++) sum->Add(i + j, tile[j]);
  }
}

// u0 (decay false) or u of a range.
void Directions(const AdamFactors& factors, bool guard, bool decay, size_t n, const float* m,
                const float* v, const float* x, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto u = Direction(d, factors, guard, hn::LoadU(d, m + i), hn::LoadU(d, v + i));
    if (decay) u = WithDecay(d, factors, u, hn::LoadU(d, x + i));
    hn::StoreU(u, d, out + i);
  }
  for (; i < n; i++) {
    out[i] = DirectionOne(factors, guard, m[i], v[i]);
    if (decay) out[i] = WithDecayOne(factors, out[i], x[i]);
  }
}

void Moments(double beta1, double beta2, size_t n, const float* gradient, float* m, float* v) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep1 = hn::Set(d, static_cast<float>(beta1));
  const auto take1 = hn::Set(d, static_cast<float>(1 - beta1));
  const auto keep2 = hn::Set(d, static_cast<float>(beta2));
  const auto take2 = hn::Set(d, static_cast<float>(1 - beta2));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto g = hn::LoadU(d, gradient + i);
    hn::StoreU(Decayed(keep1, hn::LoadU(d, m + i), take1, g), d, m + i);
    const auto v_old = hn::Mul(keep2, hn::LoadU(d, v + i));
    hn::StoreU(hn::Add(v_old, hn::Mul(hn::Mul(take2, g), g)), d, v + i);
  }
  for (; i < n; i++) MomentsOne(beta1, beta2, gradient[i], m + i, v + i);
}

LambSquares WarmUp(const AdamFactors& factors, double beta1, double beta2, size_t n,
                   const float* gradient, float* m, float* v, const float* x, bool guard) {
  OrderedSum8 sum;
  SumTiles(n, &sum, [&](size_t i, size_t count, float* out) {
    Moments(beta1, beta2, count, gradient + i, m + i, v + i);
    Directions(factors, guard, true, count, m + i, v + i, x + i, out);
  });
  return {OrderedSum(x, n), sum.Total()};
}

LambSquares BothDirections(const AdamFactors& factors, size_t n, bool guard, const float* m,
                           const float* v, const float* x) {
  OrderedSum8 plain, decayed;
  SumTiles(n, &plain, [&](size_t i, size_t count, float* out) {
    Directions(factors, guard, false, count, m + i, v + i, x + i, out);
  });
  SumTiles(n, &decayed, [&](size_t i, size_t count, float* out) {
    Directions(factors, guard, true, count, m + i, v + i, x + i, out);
  });
  return {plain.Total(), decayed.Total()};
}

void Scaled(const AdamFactors& factors, float step, size_t n, bool guard, const float* m,
            const float* v, float* x) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x_old = hn::LoadU(d, x + i);
    const auto u0 = Direction(d, factors, guard, hn::LoadU(d, m + i), hn::LoadU(d, v + i));
    const auto u = WithDecay(d, factors, u0, x_old);
    hn::StoreU(hn::Sub(x_old, hn::Mul(hn::Set(d, step), u)), d, x + i);
  }
  LambUpdateReference(factors, step, n - i, guard, m + i, v + i, x + i);
}

float Fresh(const AdamFactors& factors, double beta1, double beta2, float factor, size_t n,
            const float* values, const float* mask, bool skip_dead, float* m, const float* v,
            float* fresh) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep1 = hn::Set(d, static_cast<float>(beta1));
  const auto take1 = hn::Set(d, static_cast<float>(1 - beta1));
  const auto keep2 = hn::Set(d, static_cast<float>(beta2));
  const auto take2 = hn::Set(d, static_cast<float>(1 - beta2));
  auto largest = hn::Zero(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto m_new = hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor));
    if (mask != nullptr) m_new = hn::Mul(m_new, hn::LoadU(d, mask + i));
    const auto h = hn::Div(hn::Sub(m_new, hn::Mul(keep1, hn::LoadU(d, m + i))), take1);
    hn::StoreU(m_new, d, m + i);
    const auto old = hn::Mul(keep2, hn::LoadU(d, fresh + i));
    const auto f = hn::Add(old, hn::Mul(hn::Mul(take2, h), h));
    hn::StoreU(f, d, fresh + i);
    const auto v_at = hn::LoadU(d, v + i);
    auto ratio = hn::Div(Denominator(d, factors, v_at), Denominator(d, factors, f));
    if (skip_dead) ratio = hn::IfThenZeroElse(hn::Eq(v_at, hn::Zero(d)), ratio);
    largest = hn::IfThenElse(hn::Gt(ratio, largest), ratio, largest);
  }
  const float rest =
      LambFreshReference(factors, beta1, beta2, factor, n - i, values + i,
                         mask == nullptr ? nullptr : mask + i, skip_dead, m + i, v + i, fresh + i);
  return std::max(hn::GetLane(hn::MaxOfLanes(d, largest)), rest);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {

HWY_EXPORT(OrderedSum);
HWY_EXPORT(WarmUp);
HWY_EXPORT(Scaled);
HWY_EXPORT(Fresh);
HWY_EXPORT(BothDirections);

double OrderedSquaredSum(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(OrderedSum)(x, n);
}

LambSquares LambMoments(const AdamFactors& factors, double beta1, double beta2, size_t n,
                        const float* gradient, float* m, float* v, const float* x, bool guard) {
  return HWY_DYNAMIC_DISPATCH(WarmUp)(factors, beta1, beta2, n, gradient, m, v, x, guard);
}

void LambUpdate(const AdamFactors& factors, float step, size_t n, bool guard, const float* m,
                const float* v, float* x) {
  HWY_DYNAMIC_DISPATCH(Scaled)(factors, step, n, guard, m, v, x);
}

float LambFresh(const AdamFactors& factors, double beta1, double beta2, float factor, size_t n,
                const float* values, const float* mask, bool skip_dead, float* m, const float* v,
                float* fresh) {
  return HWY_DYNAMIC_DISPATCH(Fresh)(factors, beta1, beta2, factor, n, values, mask, skip_dead, m,
                                     v, fresh);
}

LambSquares LambDirections(const AdamFactors& factors, size_t n, bool guard, const float* m,
                           const float* v, const float* x) {
  return HWY_DYNAMIC_DISPATCH(BothDirections)(factors, n, guard, m, v, x);
}

double OrderedSquaredSumReference(const float* x, size_t n) {
  OrderedSum8 sum;
  for (size_t i = 0; i < n; i++) sum.Add(i, x[i]);
  return sum.Total();
}

LambSquares LambMomentsReference(const AdamFactors& factors, double beta1, double beta2, size_t n,
                                 const float* gradient, float* m, float* v, const float* x,
                                 bool guard) {
  OrderedSum8 update;
  for (size_t i = 0; i < n; i++) {
    MomentsOne(beta1, beta2, gradient[i], m + i, v + i);
    update.Add(i, UpdateOne(factors, guard, m[i], v[i], x[i]));
  }
  return {OrderedSquaredSumReference(x, n), update.Total()};
}

void LambUpdateReference(const AdamFactors& factors, float step, size_t n, bool guard,
                         const float* m, const float* v, float* x) {
  for (size_t i = 0; i < n; i++) x[i] -= step * UpdateOne(factors, guard, m[i], v[i], x[i]);
}

float LambFreshReference(const AdamFactors& factors, double beta1, double beta2, float factor,
                         size_t n, const float* values, const float* mask, bool skip_dead, float* m,
                         const float* v, float* fresh) {
  float largest = 0;
  for (size_t i = 0; i < n; i++) {
    const float m_new = values[i] * factor * (mask == nullptr ? 1.0f : mask[i]);
    const float h = (m_new - static_cast<float>(beta1) * m[i]) / static_cast<float>(1 - beta1);
    m[i] = m_new;
    fresh[i] = static_cast<float>(beta2) * fresh[i] + static_cast<float>(1 - beta2) * h * h;
    if (skip_dead && v[i] == 0) continue;
    const float ratio = (std::sqrt(v[i]) + factors.eps) / (std::sqrt(fresh[i]) + factors.eps);
    if (ratio > largest) largest = ratio;
  }
  return largest;
}

LambSquares LambDirectionsReference(const AdamFactors& factors, size_t n, bool guard,
                                    const float* m, const float* v, const float* x) {
  OrderedSum8 plain, decayed;
  for (size_t i = 0; i < n; i++) {
    plain.Add(i, DirectionOne(factors, guard, m[i], v[i]));
    decayed.Add(i, UpdateOne(factors, guard, m[i], v[i], x[i]));
  }
  return {plain.Total(), decayed.Total()};
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
