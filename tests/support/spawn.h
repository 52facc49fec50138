// Ranks as threads: runs fn(rank) on n threads at once and joins them. For ranks as processes that
// a test may kill: processes.h.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace bitrail::test {

inline void spawn(int n, const std::function<void(int)>& fn) {
  std::vector<std::thread> ranks;
  ranks.reserve(static_cast<size_t>(n));
  for (int rank = 0; rank < n; rank++) ranks.emplace_back([&fn, rank] { fn(rank); });
  for (std::thread& thread : ranks) thread.join();
}

}  // namespace bitrail::test
