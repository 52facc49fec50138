// What an engine counts. Written under the engine's lock (raw bytes: by the communicator's one
// user), read by anybody at any time.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/common/clock.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bitrail::engine {

// One writer at a time, so adding needs no locked instruction: five of them would be a tenth of an
// 8-byte allreduce.
class Counter {
 public:
  void add(uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t load() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// The processor's own clock: a third of the cost of clock_gettime, of unknown rate
// (Totals::time_ns).
inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(now_ns());
#endif
}

struct Totals {
  Counter calls, raw_bytes, sent_bytes, received_bytes, messages, refused, failures;
  Counter entries;       // threads that came in
  Counter inside_ticks;  // time spent in calls

  // inside_ticks in nanoseconds, by the rate since this object was made.
  uint64_t time_ns() const {
    const double ticks_passed = static_cast<double>(ticks() - first_ticks_);
    const double ns_passed = static_cast<double>(now_ns() - first_ns_);
    if (ticks_passed <= 0) return 0;
    return static_cast<uint64_t>(static_cast<double>(inside_ticks.load()) * ns_passed /
                                 ticks_passed);
  }

 private:
  uint64_t first_ticks_ = ticks();
  int64_t first_ns_ = now_ns();
};

}  // namespace bitrail::engine
