#include "tools/train/storage.h"

#include <utility>

#include "kernels/host/convert.h"

namespace bitrail::train {

Storage::Storage(Precision stored_as, std::vector<float> start)
    : precision(stored_as), values(std::move(start)) {
  if (precision == Precision::fp32) return;
  half.resize(values.size());
  Narrow(precision, values.data(), values.size(), half.data());
  Refresh();
}

void Storage::Refresh() {
  if (precision == Precision::fp16)
    kernels::HalfToFloat(half.data(), half.size(), values.data());
  else if (precision == Precision::bf16)
    kernels::BFloat16ToFloat(half.data(), half.size(), values.data());
}

bitrail_type_t TypeOf(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return BITRAIL_FLOAT16;
    case Precision::bf16:
      return BITRAIL_BFLOAT16;
    case Precision::fp32:
      break;
  }
  return BITRAIL_FLOAT32;
}

void Narrow(Precision precision, const float* in, size_t count, uint16_t* out) {
  const auto narrow =
      precision == Precision::fp16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
  narrow(in, count, out);
}

}  // namespace bitrail::train
