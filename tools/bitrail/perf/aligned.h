// Buffers that begin on a cache line, as those of PyTorch, oneDNN and most trainers do;
// std::vector's begin 16 bytes behind one.
#pragma once

#include <cstdint>
#include <new>
#include <vector>

namespace bitrail::tool {

template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlign{64};
  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlign)); }
  void deallocate(T* p, size_t) { ::operator delete(p, kAlign); }
  bool operator==(const CacheLineAllocator&) const { return true; }
};

using Bytes = std::vector<uint8_t, CacheLineAllocator<uint8_t>>;

}  // namespace bitrail::tool
