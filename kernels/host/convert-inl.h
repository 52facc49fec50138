// Vectors of 16-bit floats to and from float32 (rules: convert.h), for convert.cc and reduce.cc.
// Included once for every Highway target, hence no #pragma once.
#if defined(BITRAIL_KERNELS_HOST_CONVERT_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef BITRAIL_KERNELS_HOST_CONVERT_INL_H
#undef BITRAIL_KERNELS_HOST_CONVERT_INL_H
#else
#define BITRAIL_KERNELS_HOST_CONVERT_INL_H
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The processor's own conversion where it has one. Highway's replacement elsewhere does not cover
// Inf and NaN, so the plain integer arithmetic of convert_one.h is used there.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)

template <class D>
HWY_INLINE hn::Vec<D> WidenHalf(D d, const uint16_t* in) {
  const hn::Rebind<hwy::float16_t, D> dh;
  const hn::Rebind<uint16_t, D> du;
  return hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(du, in)));
}

template <class D>
HWY_INLINE void NarrowHalf(hn::Vec<D> v, D, uint16_t* out) {
  const hn::Rebind<hwy::float16_t, D> dh;
  const hn::Rebind<uint16_t, D> du;
  hn::StoreU(hn::BitCast(du, hn::DemoteTo(dh, v)), du, out);
}

#else

template <class D>
HWY_INLINE hn::Vec<D> WidenHalf(D d, const uint16_t* in) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint16_t, D> du;
  const auto half = hn::PromoteTo(di, hn::LoadU(du, in));
  const auto magnitude = hn::And(half, hn::Set(di, 0x7fff));
  const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(di, 0x8000)));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(di, 112 << 23));
  const auto small = hn::BitCast(di, hn::Mul(hn::ConvertTo(d, magnitude), hn::Set(d, 0x1p-24f)));
  const auto quiet =
      hn::IfThenElseZero(hn::Gt(magnitude, hn::Set(di, 0x7c00)), hn::Set(di, 0x400000));
  const auto special = hn::Or(hn::Or(shifted, hn::Set(di, 0x7f800000)), quiet);
  auto result = hn::IfThenElse(hn::Gt(hn::Set(di, 0x400), magnitude), small, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7bff)), special, result);
  return hn::BitCast(d, hn::Or(result, sign));
}

template <class D>
HWY_INLINE void NarrowHalf(hn::Vec<D> v, D d, uint16_t* out) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint32_t, D> dw;
  const hn::Rebind<uint16_t, D> du;
  const auto bits = hn::BitCast(dw, v);
  const auto sign = hn::BitCast(di, hn::And(hn::ShiftRight<16>(bits), hn::Set(dw, 0x8000u)));
  const auto unsigned_magnitude = hn::And(bits, hn::Set(dw, 0x7fffffffu));
  const auto magnitude = hn::BitCast(di, unsigned_magnitude);
  const auto odd = hn::And(hn::ShiftRight<13>(unsigned_magnitude), hn::Set(dw, 1u));
  const auto rounded = hn::Add(hn::Add(unsigned_magnitude, hn::Set(dw, 0xc8000fffu)), odd);
  const auto normal = hn::BitCast(di, hn::ShiftRight<13>(rounded));
  const auto raised = hn::Add(hn::BitCast(d, unsigned_magnitude), hn::Set(d, 0.5f));
  const auto small = hn::Sub(hn::BitCast(di, raised), hn::Set(di, 0x3f000000));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 0x3ff));
  const auto nan = hn::Or(payload, hn::Set(di, 0x7e00));
  auto result = hn::IfThenElse(hn::Gt(hn::Set(di, 0x38800000), magnitude), small, normal);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x477fffff)), hn::Set(di, 0x7c00), result);
  result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7f800000)), nan, result);
  hn::StoreU(hn::DemoteTo(du, hn::Or(result, sign)), du, out);
}

#endif

template <class D>
HWY_INLINE hn::Vec<D> WidenBFloat16(D d, const uint16_t* in) {
  const hn::Rebind<uint32_t, D> dw;
  const hn::Rebind<uint16_t, D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(dw, hn::LoadU(du, in))));
}

template <class D>
HWY_INLINE void NarrowBFloat16(hn::Vec<D> v, D, uint16_t* out) {
  const hn::Rebind<int32_t, D> di;
  const hn::Rebind<uint32_t, D> dw;
  const hn::Rebind<uint16_t, D> du;
  const auto bits = hn::BitCast(dw, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(dw, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(dw, 0x7fffu)), odd));
  const auto magnitude = hn::BitCast(di, hn::And(bits, hn::Set(dw, 0x7fffffffu)));
  const auto is_nan = hn::Gt(magnitude, hn::Set(di, 0x7f800000));
  const auto nan = hn::BitCast(di, hn::Or(high, hn::Set(dw, 0x40u)));
  const auto result = hn::IfThenElse(is_nan, nan, hn::BitCast(di, rounded));
  hn::StoreU(hn::DemoteTo(du, result), du, out);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
