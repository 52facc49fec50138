// For tests that compare a kernel with its plain loop, bit for bit, on every instruction set that
// this machine has: arrays between guard bytes, hostile values, counts.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/host/target.h"

namespace bitrail::test {

// SplitMix64: the same values on every machine.
struct Random {
  uint64_t state;
  uint64_t Next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  float Uniform() { return static_cast<float>(static_cast<int32_t>(Next() >> 32)) * 0x1p-31f; }
};

// `count` elements that start `offset` elements past a 64-byte border, with guard bytes around.
template <typename T>
class Guarded {
 public:
  Guarded(size_t count, size_t offset) : count_(count) {
    const size_t bytes = kGuard + offset * sizeof(T) + count * sizeof(T) + kGuard + 64;
    memory_.assign(bytes, kPattern);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = (64 - address % 64) % 64 + kGuard + offset * sizeof(T);
  }
  T* data() { return reinterpret_cast<T*>(memory_.data() + begin_); }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return data()[i]; }
  bool Intact() const {
    for (size_t i = 0; i < memory_.size(); i++) {
      const bool inside = i >= begin_ && i < begin_ + count_ * sizeof(T);
      if (!inside && memory_[i] != kPattern) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 128;  // keeps data() on a 64-byte border, too
  static constexpr uint8_t kPattern = 0xa5;
  size_t count_, begin_;
  std::vector<uint8_t> memory_;
};

// Random values with NaN, Inf, zeros of both signs, denormals and extremes among them.
template <typename T>
void FillHostile(Guarded<T>& array, Random& random) {
  using Limits = std::numeric_limits<T>;
  const T hostile[] = {T(0),
                       T(-0.0),
                       Limits::quiet_NaN(),
                       Limits::max(),
                       Limits::lowest(),
                       Limits::infinity(),
                       Limits::min(),
                       -Limits::min(),
                       -Limits::infinity(),
                       Limits::denorm_min(),
                       -Limits::denorm_min(),
                       T(0.5),
                       T(-0.5)};
  for (size_t i = 0; i < array.size(); i++) {
    const uint64_t pick = random.Next();
    array[i] = pick % 4 == 0 ? hostile[(pick >> 8) % std::size(hostile)]
                             : static_cast<T>(random.Uniform());
  }
}

template <typename T>
void FillFinite(Guarded<T>& array, Random& random) {
  for (size_t i = 0; i < array.size(); i++) array[i] = static_cast<T>(random.Uniform());
}

template <typename T>
void FillBits(Guarded<T>& array, Random& random) {
  for (size_t i = 0; i < array.size(); i++) array[i] = static_cast<T>(random.Next());
}

// Bit for bit, but any NaN equals any NaN: which of two NaN an addition keeps is the processor's
// choice.
inline bool Same(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
inline bool Same(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}
template <typename T>
bool Same(T a, T b) {
  return a == b;
}

// The first difference, or damage around either array, as a failure that names count and offset.
template <typename T>
::testing::AssertionResult Equal(Guarded<T>& got, Guarded<T>& want) {
  if (!got.Intact()) return ::testing::AssertionFailure() << "wrote outside the array";
  for (size_t i = 0; i < want.size(); i++) {
    if (!Same(got[i], want[i])) {
      return ::testing::AssertionFailure() << "element " << i << " of " << want.size() << ": "
                                           << +got[i] << " instead of " << +want[i];
    }
  }
  return ::testing::AssertionSuccess();
}

// Everything up to twice the widest tile (64 values) and a few larger ones.
inline std::vector<size_t> Counts() {
  std::vector<size_t> counts;
  for (size_t n = 0; n <= 130; n++) counts.push_back(n);
  counts.insert(counts.end(), {191, 192, 193, 256, 1000, 4096, 10007});
  return counts;
}

// Runs its tests once for each instruction set.
class OnEachTarget : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { kernels::ForceTarget(GetParam()); }
  void TearDown() override { kernels::ForceTarget(0); }
};

#define BITRAIL_ON_EACH_TARGET(suite)                                                       \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(::bitrail::kernels::Targets()),     \
                           [](const ::testing::TestParamInfo<int64_t>& one) {               \
                             return std::string(::bitrail::kernels::TargetName(one.param)); \
                           })

}  // namespace bitrail::test
