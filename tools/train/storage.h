// Parameters as they are stored and exchanged (--precision) and as the model computes with them
// (float32: oneDNN's products of 16-bit matrices need instructions that most hosts lack).
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <vector>

#include "tools/train/options.h"

namespace bitrail::train {

struct Storage {
  Precision precision = Precision::fp32;
  std::vector<float> values;   // what the model reads; with fp32 also what the optimizer updates
  std::vector<uint16_t> half;  // fp16, bf16: raw bits, what the optimizer updates

  Storage() = default;
  // Stores `start`, rounded.
  Storage(Precision stored_as, std::vector<float> start);
  void* stored() {
    return precision == Precision::fp32 ? static_cast<void*>(values.data())
                                        : static_cast<void*>(half.data());
  }
  // After an update: values from half.
  void Refresh();
};

bitrail_type_t TypeOf(Precision precision);
// Not for fp32.
void Narrow(Precision precision, const float* in, size_t count, uint16_t* out);

}  // namespace bitrail::train
