// Fused steps of 0/1 Adam (equations: zero_one.h). No MulAdd: it would change the last bit.
#include "kernels/host/zero_one.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/zero_one.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/update-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {

void Momenta(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
             const float* mask, bool guard, float* m, const float* v, float* x) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep = hn::Set(d, static_cast<float>(beta1));
  const auto take = hn::Set(d, static_cast<float>(1 - beta1));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto g = hn::LoadU(d, gradient + i);
    if (mask != nullptr) g = hn::Mul(g, hn::LoadU(d, mask + i));
    const auto m_new = Decayed(keep, hn::LoadU(d, m + i), take, g);
    hn::StoreU(m_new, d, m + i);
    const auto x_old = hn::LoadU(d, x + i);
    const auto u =
        WithDecay(d, factors, Direction(d, factors, guard, m_new, hn::LoadU(d, v + i)), x_old);
    hn::StoreU(hn::Sub(x_old, hn::Mul(hn::Set(d, factors.lr), u)), d, x + i);
  }
  MomentumStepReference(factors, beta1, n - i, gradient + i, mask == nullptr ? nullptr : mask + i,
                        guard, m + i, v + i, x + i);
}

void Values(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
            const float* m, const float* v, const float* x, const float* base, bool guard,
            float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto keep = hn::Set(d, static_cast<float>(beta1));
  const auto take = hn::Set(d, static_cast<float>(1 - beta1));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto m_new = Decayed(keep, hn::LoadU(d, m + i), take, hn::LoadU(d, gradient + i));
    const auto v_at = hn::LoadU(d, v + i);
    const auto x_old = hn::LoadU(d, x + i);
    const auto u = WithDecay(d, factors, Direction(d, factors, guard, m_new, v_at), x_old);
    const auto x_new = hn::Sub(x_old, hn::Mul(hn::Set(d, factors.lr), u));
    const auto moved = hn::Sub(x_new, hn::LoadU(d, base + i));
    hn::StoreU(hn::Mul(moved, Denominator(d, factors, v_at)), d, out + i);
  }
  SyncValueReference(factors, beta1, n - i, gradient + i, m + i, v + i, x + i, base + i, guard,
                     out + i);
}

void Sync(const AdamFactors& factors, float factor, size_t n, const float* values,
          const float* mask, bool guard, float* m, const float* v, float* x, float* base) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    auto mean = hn::LoadU(d, values + i);
    if (mask != nullptr) mean = hn::Mul(mean, hn::LoadU(d, mask + i));
    hn::StoreU(hn::Mul(mean, hn::Set(d, factor)), d, m + i);
    const auto v_at = hn::LoadU(d, v + i);
    auto x_new = hn::Add(hn::LoadU(d, base + i), hn::Div(mean, Denominator(d, factors, v_at)));
    if (guard) {
      const auto x_old = hn::LoadU(d, x + i);
      const auto decay = WithDecay(d, factors, hn::Zero(d), x_old);
      const auto decayed = hn::Sub(x_old, hn::Mul(hn::Set(d, factors.lr), decay));
      x_new = hn::IfThenElse(hn::Eq(v_at, hn::Zero(d)), decayed, x_new);
    }
    hn::StoreU(x_new, d, x + i);
    hn::StoreU(x_new, d, base + i);
  }
  SyncStepReference(factors, factor, n - i, values + i, mask == nullptr ? nullptr : mask + i, guard,
                    m + i, v + i, x + i, base + i);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/host/update_one.h"

namespace bitrail::kernels {

HWY_EXPORT(Momenta);
HWY_EXPORT(Values);
HWY_EXPORT(Sync);

void MomentumStep(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
                  const float* mask, bool guard, float* m, const float* v, float* x) {
  HWY_DYNAMIC_DISPATCH(Momenta)(factors, beta1, n, gradient, mask, guard, m, v, x);
}

void SyncValue(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
               const float* m, const float* v, const float* x, const float* base, bool guard,
               float* out) {
  HWY_DYNAMIC_DISPATCH(Values)(factors, beta1, n, gradient, m, v, x, base, guard, out);
}

void SyncStep(const AdamFactors& factors, float factor, size_t n, const float* values,
              const float* mask, bool guard, float* m, const float* v, float* x, float* base) {
  HWY_DYNAMIC_DISPATCH(Sync)(factors, factor, n, values, mask, guard, m, v, x, base);
}

void MomentumStepReference(const AdamFactors& factors, double beta1, size_t n,
                           const float* gradient, const float* mask, bool guard, float* m,
                           const float* v, float* x) {
  for (size_t i = 0; i < n; i++) {
    const float g = mask == nullptr ? gradient[i] : gradient[i] * mask[i];
    MomentumReference(beta1, 1, &g, m + i, m + i);
    x[i] -= factors.lr * UpdateOne(factors, guard, m[i], v[i], x[i]);
  }
}

void SyncValueReference(const AdamFactors& factors, double beta1, size_t n, const float* gradient,
                        const float* m, const float* v, const float* x, const float* base,
                        bool guard, float* out) {
  for (size_t i = 0; i < n; i++) {
    float m_new;
    MomentumReference(beta1, 1, gradient + i, m + i, &m_new);
    const float x_new = x[i] - factors.lr * UpdateOne(factors, guard, m_new, v[i], x[i]);
    out[i] = (x_new - base[i]) * (std::sqrt(v[i]) + factors.eps);
  }
}

void SyncStepReference(const AdamFactors& factors, float factor, size_t n, const float* values,
                       const float* mask, bool guard, float* m, const float* v, float* x,
                       float* base) {
  for (size_t i = 0; i < n; i++) {
    const float mean = mask == nullptr ? values[i] : values[i] * mask[i];
    m[i] = mean * factor;
    if (guard && v[i] == 0) {
      x[i] -= factors.lr * WithDecayOne(factors, 0, x[i]);
    } else {
      x[i] = base[i] + mean / (std::sqrt(v[i]) + factors.eps);
    }
    base[i] = x[i];
  }
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
