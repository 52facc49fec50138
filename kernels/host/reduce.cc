// Element-wise reduction of several arrays in one pass (rules: reduce.h).
#include "kernels/host/reduce.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/host/reduce.cc"
#include <hwy/foreach_target.h>  // compiles the next section once for every target
// after foreach_target.h, as it demands
#include <hwy/highway.h>

#include "kernels/host/convert-inl.h"
#include "kernels/host/prefetch.h"
#include "kernels/host/reduce_one.h"

HWY_BEFORE_NAMESPACE();
namespace bitrail::kernels::HWY_NAMESPACE {

template <class Format>
struct Vectors {  // of a plain type
  using D = hn::ScalableTag<typename Format::Work>;
  static HWY_INLINE hn::Vec<D> Load(D d, const typename Format::Element* p) {
    return hn::LoadU(d, p);
  }
  static HWY_INLINE void Store(hn::Vec<D> v, D d, typename Format::Element* p) {
    hn::StoreU(v, d, p);
  }
};
template <>
struct Vectors<Half> {
  using D = hn::ScalableTag<float>;
  static HWY_INLINE hn::Vec<D> Load(D d, const uint16_t* p) { return WidenHalf(d, p); }
  static HWY_INLINE void Store(hn::Vec<D> v, D d, uint16_t* p) { NarrowHalf(v, d, p); }
};
template <>
struct Vectors<BFloat16> {
  using D = hn::ScalableTag<float>;
  static HWY_INLINE hn::Vec<D> Load(D d, const uint16_t* p) { return WidenBFloat16(d, p); }
  static HWY_INLINE void Store(hn::Vec<D> v, D d, uint16_t* p) { NarrowBFloat16(v, d, p); }
};

// Minimum and maximum by comparison and choice, not by the processor's own: those differ between
// processors in NaN and in the sign of zero.
template <Op op, class D, class V = hn::Vec<D>>
HWY_INLINE V Combine(D, V a, V b) {
  using T = hn::TFromD<D>;
  if constexpr (op == Op::sum) {
    return hn::Add(a, b);
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto take_first = op == Op::min ? hn::Lt(a, b) : hn::Gt(a, b);
    return hn::IfThenElse(hn::Or(take_first, hn::IsNaN(a)), a, b);
  } else {
    return op == Op::min ? hn::Min(a, b) : hn::Max(a, b);
  }
}

// Four vectors at a time stay in registers while the sources pass by.
template <class Format, Op op>
void ReduceAll(const void* const* sources, int count, size_t n, void* out) {
  using Element = typename Format::Element;
  using Vector = Vectors<Format>;
  const typename Vector::D d;
  const size_t lanes = hn::Lanes(d);
  const auto source = [sources](int k) { return static_cast<const Element*>(sources[k]); };
  auto* to = static_cast<Element*>(out);
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    auto v0 = Vector::Load(d, source(0) + i);
    auto v1 = Vector::Load(d, source(0) + i + lanes);
    auto v2 = Vector::Load(d, source(0) + i + 2 * lanes);
    auto v3 = Vector::Load(d, source(0) + i + 3 * lanes);
    for (int k = 1; k < count; k++) {
      const Element* from = source(k) + i;
      v0 = Combine<op>(d, v0, Vector::Load(d, from));
      v1 = Combine<op>(d, v1, Vector::Load(d, from + lanes));
      v2 = Combine<op>(d, v2, Vector::Load(d, from + 2 * lanes));
      v3 = Combine<op>(d, v3, Vector::Load(d, from + 3 * lanes));
    }
    Vector::Store(v0, d, to + i);
    Vector::Store(v1, d, to + i + lanes);
    Vector::Store(v2, d, to + i + 2 * lanes);
    Vector::Store(v3, d, to + i + 3 * lanes);
  }
  for (; i < n; i++) to[i] = ReduceElement<Format, op>(sources, count, i);
}

template <class Format>
void MultiplyAll(void* x, size_t n, double factor) {
  using Vector = Vectors<Format>;
  using Work = typename Format::Work;
  const typename Vector::D d;
  const size_t lanes = hn::Lanes(d);
  auto* values = static_cast<typename Format::Element*>(x);
  const auto rounded = static_cast<Work>(factor);
  const auto factors = hn::Set(d, rounded);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    Vector::Store(hn::Mul(Vector::Load(d, values + i), factors), d, values + i);
  }
  for (; i < n; i++) values[i] = Format::Put(Format::Get(values[i]) * rounded);
}

template <class Format>
ReduceFunction FindOp(Op op) {
  switch (op) {
    case Op::sum:
      return ReduceAll<Format, Op::sum>;
    case Op::min:
      return ReduceAll<Format, Op::min>;
    case Op::max:
      return ReduceAll<Format, Op::max>;
  }
  return nullptr;
}

ReduceFunction Find(Type type, Op op) {
  switch (type) {
    case Type::float32:
      return FindOp<Plain<float>>(op);
    case Type::float16:
      return FindOp<Half>(op);
    case Type::bfloat16:
      return FindOp<BFloat16>(op);
    case Type::float64:
      return FindOp<Plain<double>>(op);
    case Type::int32:
      return FindOp<Plain<int32_t>>(op);
    case Type::int64:
      return FindOp<Plain<int64_t>>(op);
    case Type::uint8:
      return FindOp<Plain<uint8_t>>(op);
  }
  return nullptr;
}

MultiplyFunction FindMultiplyOf(Type type) {
  switch (type) {
    case Type::float32:
      return MultiplyAll<Plain<float>>;
    case Type::float16:
      return MultiplyAll<Half>;
    case Type::bfloat16:
      return MultiplyAll<BFloat16>;
    case Type::float64:
      return MultiplyAll<Plain<double>>;
    default:
      return nullptr;
  }
}

}  // namespace bitrail::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bitrail::kernels {

HWY_EXPORT(Find);
HWY_EXPORT(FindMultiplyOf);

ReduceFunction FindReduce(Type type, Op op) { return HWY_DYNAMIC_DISPATCH(Find)(type, op); }
MultiplyFunction FindMultiply(Type type) { return HWY_DYNAMIC_DISPATCH(FindMultiplyOf)(type); }

}  // namespace bitrail::kernels
#endif  // HWY_ONCE
