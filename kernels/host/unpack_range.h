// The plain loop of unpack.h over a part of the values: the definition, and the end of the fast
// loops.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

// Values [begin, end) of UnpackAverage (add: acc[i] = sum + acc[i]) or UnpackSum. ranks >= 1.
inline void UnpackRange(const uint8_t* const* bits, const float* weights, int ranks, size_t begin,
                        size_t end, bool add, float* acc) {
  for (size_t i = begin; i < end; i++) {
    float sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
      const bool positive = (bits[rank][i / 8] >> (i % 8)) & 1;
      const float value = positive ? weights[rank] : -weights[rank];
      sum = rank == 0 ? value : sum + value;
    }
    acc[i] = add ? sum + acc[i] : sum;
  }
}

}  // namespace bitrail::kernels
