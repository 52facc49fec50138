// Software prefetch for kernels that stream through memory once.
#pragma once

#include <hwy/cache_control.h>

#include <cstddef>
#include <cstdint>

namespace bitrail::kernels {

// One core's hardware prefetchers stop at page borders and keep too few lines in flight to reach
// the bandwidth that memcpy gets. 2 KiB ahead covers memory latency at about 10 GB/s a stream;
// further ahead evicts lines of the first-level cache before they are used.
inline constexpr uintptr_t kPrefetchBytes = 2048;

// `p` may lie near the end of an array: a prefetch past it reads nothing and never faults, and the
// address is computed as an integer so that no pointer leaves its array.
template <typename T>
HWY_INLINE void PrefetchAhead(const T* p, uintptr_t bytes = kPrefetchBytes) {
  hwy::Prefetch(reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(p) + bytes));
}

}  // namespace bitrail::kernels
