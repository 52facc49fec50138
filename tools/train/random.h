// Counter-based random numbers: the same (seed, stream, index) gives the same numbers on every
// machine, so a run can be repeated and ranks draw different data without talking to each other.
#pragma once

#include <cmath>
#include <cstdint>

namespace bitrail::train {

// SplitMix64's output function: a bijection that mixes all bits.
inline uint64_t Mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

struct Random {
  uint64_t state;

  Random(uint64_t seed, uint64_t stream, uint64_t index = 0)
      : state(Mix(Mix(Mix(seed) ^ stream) ^ index)) {}

  uint64_t Next() { return Mix(state++); }
  // Uniform in [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Uniform in [0, n), n > 0. The bias (n / 2^64) does not matter for drawing text.
  uint64_t Below(uint64_t n) { return Next() % n; }
  // Standard normal, Box-Muller.
  double Normal() {
    constexpr double kTwoPi = 6.283185307179586;
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform()));
    return radius * std::cos(kTwoPi * Uniform());
  }
};

}  // namespace bitrail::train
