// The plain loops of reduce.h.
#include "kernels/host/reduce.h"
#include "kernels/host/reduce_one.h"

namespace bitrail::kernels {
namespace {

template <class Format, Op op>
void Reduce(const void* const* sources, int count, size_t n, void* out) {
  auto* to = static_cast<typename Format::Element*>(out);
  for (size_t i = 0; i < n; i++) to[i] = ReduceElement<Format, op>(sources, count, i);
}

template <class Format>
ReduceFunction FindOp(Op op) {
  switch (op) {
    case Op::sum:
      return Reduce<Format, Op::sum>;
    case Op::min:
      return Reduce<Format, Op::min>;
    case Op::max:
      return Reduce<Format, Op::max>;
  }
  return nullptr;
}

}  // namespace

ReduceFunction FindReduceReference(Type type, Op op) {
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

}  // namespace bitrail::kernels
