// Element-wise reduction of several arrays in one pass, in the order of `sources` (rank order makes
// it deterministic).
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

enum class Type : uint8_t {
  float32,
  float16,
  bfloat16,
  float64,
  int32,
  int64,
  uint8
};  // values of bitrail_type_t
enum class Op : uint8_t { sum, min, max };

// out[i] = sources[0][i] op sources[1][i] op ...; count >= 1 sources; out may equal any source
// exactly (not overlap partly). 16-bit floats accumulate in float32 and round once. Integer sums
// wrap. min/max: NaN in any source gives NaN.
using ReduceFunction = void (*)(const void* const* sources, int count, size_t n, void* out);
// Null for a combination that does not exist. Choose once, at set-up.
ReduceFunction FindReduce(Type type, Op op);
ReduceFunction FindReduceReference(Type type, Op op);

// x[i] *= factor, floating types only (for averages); null otherwise. 16-bit types through float32.
using MultiplyFunction = void (*)(void* x, size_t n, double factor);
MultiplyFunction FindMultiply(Type type);

}  // namespace bitrail::kernels
