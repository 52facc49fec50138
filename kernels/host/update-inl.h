// The update that all Adam-like steps end in (equations: adam.h), as vectors. Included once for
// every Highway target, hence no #pragma once.
#if defined(BITRAIL_KERNELS_HOST_UPDATE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BITRAIL_KERNELS_HOST_UPDATE_INL_H
#undef BITRAIL_KERNELS_HOST_UPDATE_INL_H
#else
#define BITRAIL_KERNELS_HOST_UPDATE_INL_H
#endif

#include <hwy/highway.h>

#include "kernels/host/adam.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V = hn::Vec<D>>
HWY_INLINE V Denominator(D d, const AdamFactors& factors, V v) {
  return hn::Add(hn::Sqrt(v), hn::Set(d, factors.eps));
}

// m / (sqrt(v) + eps); guard: 0 where v == 0.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V Direction(D d, const AdamFactors& factors, bool guard, V m, V v) {
  const V u = hn::Div(m, Denominator(d, factors, v));
  return guard ? hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), u) : u;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V WithDecay(D d, const AdamFactors& factors, V u, V x) {
  if (!(factors.weight_decay > 0)) return u;
  return hn::Add(u, hn::Mul(hn::Set(d, factors.weight_decay), x));
}

// keep * old + take * g.
template <class V>
HWY_INLINE V Decayed(V keep, V old, V take, V g) {
  return hn::Add(hn::Mul(keep, old), hn::Mul(take, g));
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
