// The lock of a domain: a word that is tried, and slept on when somebody else has it. Taken for
// every isend and test, so that a lock without contention costs a few instructions, fewer than a
// pthread mutex. Fits std::lock_guard.
#pragma once

#include <atomic>
#include <cstdint>

namespace bitrail::plugin {

class Lock {
 public:
  Lock() = default;
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool try_lock() {
    uint32_t expected = kFree;
    return word_.compare_exchange_strong(expected, kTaken, std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }
  void lock() {
    if (!try_lock()) [[unlikely]] {
      lock_later();
    }
  }
  void unlock() {
    if (word_.exchange(kFree, std::memory_order_release) == kAwaited) [[unlikely]] {
      word_.notify_one();
    }
  }

 private:
  enum : uint32_t { kFree, kTaken, kAwaited };

  // From here on "awaited", so that unlock() wakes one, who may wake one more for nothing.
  __attribute__((noinline)) void lock_later() {
    while (word_.exchange(kAwaited, std::memory_order_acquire) != kFree) {
      word_.wait(kAwaited, std::memory_order_relaxed);
    }
  }

  std::atomic<uint32_t> word_{kFree};
};

}  // namespace bitrail::plugin
