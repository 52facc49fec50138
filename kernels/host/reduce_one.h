// Reduction of one element (rules: reduce.h): how a type is read and written, and what an operation
// does with two values. The definition, and the end of the fast loops.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/host/convert_one.h"
#include "kernels/host/reduce.h"

namespace bitrail::kernels {

// Element: as stored. Work: as computed.
template <typename T>
struct Plain {
  using Element = T;
  using Work = T;
  static Work Get(Element e) { return e; }
  static Element Put(Work w) { return w; }
};
struct Half {
  using Element = uint16_t;
  using Work = float;
  static Work Get(Element e) { return HalfToFloatOne(e); }
  static Element Put(Work w) { return FloatToHalfOne(w); }
};
struct BFloat16 {
  using Element = uint16_t;
  using Work = float;
  static Work Get(Element e) { return BFloat16ToFloatOne(e); }
  static Element Put(Work w) { return FloatToBFloat16One(w); }
};

template <Op op, typename T>
T ReduceOne(T a, T b) {
  if constexpr (op == Op::sum) {
    if constexpr (std::is_integral_v<T>) {  // wraps
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    } else {
      return a + b;
    }
  } else {
    bool take_first = op == Op::min ? a < b : a > b;
    if constexpr (std::is_floating_point_v<T>) take_first = take_first || a != a;  // NaN stays
    return take_first ? a : b;
  }
}

template <class Format, Op op>
typename Format::Element ReduceElement(const void* const* sources, int count, size_t i) {
  using Element = typename Format::Element;
  auto value = Format::Get(static_cast<const Element*>(sources[0])[i]);
  for (int k = 1; k < count; k++) {
    value = ReduceOne<op>(value, Format::Get(static_cast<const Element*>(sources[k])[i]));
  }
  return Format::Put(value);
}

}  // namespace bitrail::kernels
