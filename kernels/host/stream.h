// From which length on results are written past the caches.
#pragma once

#include <cstddef>

namespace bitrail::kernels {

// Values that are only written, this many or more (16 MiB of float32), will not be found in a cache
// by whoever reads them next: storing them past the caches saves the read that an ordinary store
// to an absent line costs (2.3 times faster at 256 MiB). Smaller ones are likely to be read soon.
// What has been read before it is written is present, and ordinary stores win at any size.
inline constexpr size_t kStreamFrom = size_t{1} << 22;

}  // namespace bitrail::kernels
