// Sums whose order does not depend on the vector width (lamb.h), and LAMB's moments of one value.
#pragma once

#include <cstddef>

#include "kernels/host/update_one.h"

namespace bitrail::kernels {

inline constexpr size_t kPartialSums = 8;

struct OrderedSum8 {
  double partial[kPartialSums] = {};
  // Adds the square of element i.
  void Add(size_t i, float x) {
    partial[i % kPartialSums] += static_cast<double>(x) * static_cast<double>(x);
  }
  double Total() const {
    return ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
           ((partial[4] + partial[5]) + (partial[6] + partial[7]));
  }
};

inline void MomentsOne(double beta1, double beta2, float g, float* m, float* v) {
  *m = static_cast<float>(beta1) * *m + static_cast<float>(1 - beta1) * g;
  *v = static_cast<float>(beta2) * *v + static_cast<float>(1 - beta2) * g * g;
}

}  // namespace bitrail::kernels
