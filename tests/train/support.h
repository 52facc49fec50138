// Small random tensors and the comparison that the layer tests share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "tests/train/reference.h"
#include "tools/train/random.h"

namespace bitrail::train {

inline std::vector<float> Noise(size_t count, uint64_t stream, double deviation = 1) {
  Random random(7, stream);
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(deviation * random.Normal());
  return x;
}

inline std::vector<size_t> All(size_t count) {
  std::vector<size_t> at(count);
  std::iota(at.begin(), at.end(), size_t{0});
  return at;
}

// Each value within `tolerance` of the largest expected magnitude: float32 sums lose digits
// relative to their largest terms.
inline void ExpectClose(const std::vector<float>& actual, const reference::Values& expected,
                        double tolerance, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 0;
  for (const double e : expected) largest = std::max(largest, std::abs(e));
  for (size_t i = 0; i < actual.size(); i++)
    ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << what << " element " << i;
}

inline double Dot(const reference::Values& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); i++) sum += a[i] * static_cast<double>(b[i]);
  return sum;
}

}  // namespace bitrail::train
