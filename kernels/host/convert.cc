// Between float32 and the 16-bit types (rules: convert.h).
#include "kernels/host/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/convert.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {

void WidenHalves(const uint16_t* in, size_t n, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(WidenHalf(d, in + i), d, out + i);
  HalfToFloatReference(in + i, n - i, out + i);
}

void NarrowHalves(const float* in, size_t n, uint16_t* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) NarrowHalf(hn::LoadU(d, in + i), d, out + i);
  FloatToHalfReference(in + i, n - i, out + i);
}

void WidenBFloat16s(const uint16_t* in, size_t n, float* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(WidenBFloat16(d, in + i), d, out + i);
  BFloat16ToFloatReference(in + i, n - i, out + i);
}

void NarrowBFloat16s(const float* in, size_t n, uint16_t* out) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) NarrowBFloat16(hn::LoadU(d, in + i), d, out + i);
  FloatToBFloat16Reference(in + i, n - i, out + i);
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kernels/host/convert_one.h"

namespace bitrail::kernels {

HWY_EXPORT(WidenHalves);
HWY_EXPORT(NarrowHalves);
HWY_EXPORT(WidenBFloat16s);
HWY_EXPORT(NarrowBFloat16s);

void HalfToFloat(const uint16_t* in, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenHalves)(in, n, out);
}
void FloatToHalf(const float* in, size_t n, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(NarrowHalves)(in, n, out);
}
void BFloat16ToFloat(const uint16_t* in, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(WidenBFloat16s)(in, n, out);
}
void FloatToBFloat16(const float* in, size_t n, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(NarrowBFloat16s)(in, n, out);
}

void HalfToFloatReference(const uint16_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; i++) out[i] = HalfToFloatOne(in[i]);
}
void FloatToHalfReference(const float* in, size_t n, uint16_t* out) {
  for (size_t i = 0; i < n; i++) out[i] = FloatToHalfOne(in[i]);
}
void BFloat16ToFloatReference(const uint16_t* in, size_t n, float* out) {
  for (size_t i = 0; i < n; i++) out[i] = BFloat16ToFloatOne(in[i]);
}
void FloatToBFloat16Reference(const float* in, size_t n, uint16_t* out) {
  for (size_t i = 0; i < n; i++) out[i] = FloatToBFloat16One(in[i]);
}

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
