// Monotonic time and deadlines. Every wait in BitRail takes a Deadline that came in as data.
#pragma once

#include <chrono>
#include <cstdint>

namespace bitrail {

// Nanoseconds of CLOCK_MONOTONIC: the same clock for all processes of a host.
inline int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

struct Deadline {
  int64_t at_ns = INT64_MAX;  // INT64_MAX: never

  static Deadline in_ms(int64_t ms) { return {now_ns() + ms * 1'000'000}; }
  bool passed() const { return at_ns != INT64_MAX && now_ns() >= at_ns; }
  // Milliseconds left, rounded up, for poll(); at least 0, at most `cap`.
  int left_ms(int cap) const {
    if (at_ns == INT64_MAX) return cap;
    const int64_t left = (at_ns - now_ns() + 999'999) / 1'000'000;
    return static_cast<int>(left < 0 ? 0 : (left > cap ? cap : left));
  }
};

}  // namespace bitrail
