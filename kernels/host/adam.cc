// Fused element-wise Adam steps (equations: adam.h). No MulAdd here: a contracted multiply-add
// would change the last bit.
#include "kernels/host/adam.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/adam.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "kernels/host/prefetch.h"
#include "kernels/host/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {

// x - lr * u with u = m / (sqrt(v) + eps) + weight_decay * x; guard: no momentum where v == 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Update(D d, const AdamFactors& factors, bool guard, V m, V v, V x) {
  const V u = WithDecay(d, factors, Direction(d, factors, guard, m, v), x);
  return hn::Sub(x, hn::Mul(hn::Set(d, factors.lr), u));
}

void Adam(const AdamFactors& factors, double beta1, double beta2, size_t n, const float* gradient,
          float* m, float* v, float* x, bool guard) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep1 = hn::Set(d, static_cast<float>(beta1));
  const auto take1 = hn::Set(d, static_cast<float>(1 - beta1));
  const auto keep2 = hn::Set(d, static_cast<float>(beta2));
  const auto take2 = hn::Set(d, static_cast<float>(1 - beta2));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto g = hn::LoadU(d, gradient + i);
    const auto m_new = hn::Add(hn::Mul(keep1, hn::LoadU(d, m + i)), hn::Mul(take1, g));
    const auto v_new = hn::Add(hn::Mul(keep2, hn::LoadU(d, v + i)), hn::Mul(hn::Mul(take2, g), g));
    hn::StoreU(m_new, d, m + i);
    hn::StoreU(v_new, d, v + i);
    hn::StoreU(Update(d, factors, guard, m_new, v_new, hn::LoadU(d, x + i)), d, x + i);
  }
  AdamStepReference(factors, beta1, beta2, n - i, gradient + i, m + i, v + i, x + i, guard);
}

void NewMomentum(double beta1, size_t n, const float* gradient, const float* m, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep = hn::Set(d, static_cast<float>(beta1));
  const auto take = hn::Set(d, static_cast<float>(1 - beta1));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    PrefetchAhead(gradient + i);
    PrefetchAhead(m + i);
    const auto old = hn::Mul(keep, hn::LoadU(d, m + i));
    hn::StoreU(hn::Add(old, hn::Mul(take, hn::LoadU(d, gradient + i))), d, out + i);
  }
  MomentumReference(beta1, n - i, gradient + i, m + i, out + i);
}

// kStream: m lies on a vector's boundary, and its lines are written without being fetched.
template <bool kStream>
void OneBitAdamVectors(const AdamFactors& factors, size_t n, const float* values, const float* mask,
                       bool guard, float* m, const float* v, float* x) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (!kStream) PrefetchAhead(m + i);  // written, but its line is fetched all the same
    PrefetchAhead(v + i);
    PrefetchAhead(x + i);
    auto m_new = hn::LoadU(d, values + i);
    if (mask != nullptr) m_new = hn::Mul(m_new, hn::LoadU(d, mask + i));
    if constexpr (kStream) {
      hn::Stream(m_new, d, m + i);
    } else {
      hn::StoreU(m_new, d, m + i);
    }
    const auto x_old = hn::LoadU(d, x + i);
    hn::StoreU(Update(d, factors, guard, m_new, hn::LoadU(d, v + i), x_old), d, x + i);
  }
  OneBitAdamStepReference(factors, n - i, values + i, mask == nullptr ? nullptr : mask + i, guard,
                          m + i, v + i, x + i);
}

void OneBitAdam(const AdamFactors& factors, size_t n, const float* values, const float* mask,
                bool guard, float* m, const float* v, float* x, bool stream) {
  if (!stream) return OneBitAdamVectors<false>(factors, n, values, mask, guard, m, v, x);
  const size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  const size_t past = reinterpret_cast<uintptr_t>(m) / sizeof(float) % lanes;
  const size_t head = std::min(n, (lanes - past) % lanes);
  OneBitAdamStepReference(factors, head, values, mask, guard, m, v, x);
  OneBitAdamVectors<true>(factors, n - head, values + head, mask == nullptr ? nullptr : mask + head,
                          guard, m + head, v + head, x + head);
  hwy::FlushStream();
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/host/update_one.h"

namespace bitrail::kernels {
HWY_EXPORT(Adam);
HWY_EXPORT(NewMomentum);
HWY_EXPORT(OneBitAdam);

void AdamStep(const AdamFactors& factors, double beta1, double beta2, size_t n,
              const float* gradient, float* m, float* v, float* x, bool guard) {
  HWY_DYNAMIC_DISPATCH(Adam)(factors, beta1, beta2, n, gradient, m, v, x, guard);
}

void Momentum(double beta1, size_t n, const float* gradient, const float* m, float* out) {
  HWY_DYNAMIC_DISPATCH(NewMomentum)(beta1, n, gradient, m, out);
}

void OneBitAdamStep(const AdamFactors& factors, size_t n, const float* values, const float* mask,
                    bool guard, float* m, const float* v, float* x, bool stream) {
  HWY_DYNAMIC_DISPATCH(OneBitAdam)(factors, n, values, mask, guard, m, v, x, stream);
}

void AdamStepReference(const AdamFactors& factors, double beta1, double beta2, size_t n,
                       const float* gradient, float* m, float* v, float* x, bool guard) {
  const auto keep2 = static_cast<float>(beta2);
  const auto take2 = static_cast<float>(1 - beta2);
  for (size_t i = 0; i < n; i++) {
    const float g = gradient[i];
    MomentumReference(beta1, 1, &g, m + i, m + i);
    v[i] = keep2 * v[i] + take2 * g * g;
    x[i] -= factors.lr * UpdateOne(factors, guard, m[i], v[i], x[i]);
  }
}

void MomentumReference(double beta1, size_t n, const float* gradient, const float* m, float* out) {
  const auto keep = static_cast<float>(beta1);
  const auto take = static_cast<float>(1 - beta1);
  for (size_t i = 0; i < n; i++) out[i] = keep * m[i] + take * gradient[i];
}

void OneBitAdamStepReference(const AdamFactors& factors, size_t n, const float* values,
                             const float* mask, bool guard, float* m, const float* v, float* x) {
  for (size_t i = 0; i < n; i++) {
    m[i] = mask == nullptr ? values[i] : values[i] * mask[i];
    x[i] -= factors.lr * UpdateOne(factors, guard, m[i], v[i], x[i]);
  }
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
