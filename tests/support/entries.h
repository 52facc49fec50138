// What a process has: the entries of /proc/self/task (threads) and /proc/self/fd (descriptors, with
// the one that reads them).
#pragma once

#include <chrono>
#include <filesystem>
#include <thread>

namespace bitrail::test {

inline constexpr const char* kThreads = "/proc/self/task";
inline constexpr const char* kDescriptors = "/proc/self/fd";

inline long entries(const char* folder) {
  long count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) count++;
  return count;
}

// Their number once it is no more than `most`, or after five seconds: a thread that was joined
// still stands in the folder until the kernel has done with it, which takes long on a busy machine.
inline long entries_left(const char* folder, long most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  long count = entries(folder);
  while (count > most && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    count = entries(folder);
  }
  return count;
}

}  // namespace bitrail::test
