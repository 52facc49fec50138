#include "runtime/engine/scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>

namespace bitrail::engine {
namespace {

// Pages of its own, so that a registration of it reaches nothing else, and ends with it.
constexpr uint64_t kPage = 4096, kHugePage = uint64_t{2} << 20;

void release(Scratch::Block* block) {
  block->memory.reset();  // before the memory goes
  std::free(block->data);
}

}  // namespace

Scratch::~Scratch() {
  for (Block& block : free_) release(&block);
}

Scratch::Block Scratch::take(uint64_t bytes) {
  if (bytes == 0) return {};
  {
    std::lock_guard lock(mutex_);
    auto best = free_.end();  // the smallest that fits
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (it->bytes >= bytes && (best == free_.end() || it->bytes < best->bytes)) best = it;
    if (best == free_.end() && !free_.empty()) {  // none: grow the largest
      best = std::max_element(free_.begin(), free_.end(),
                              [](const Block& a, const Block& b) { return a.bytes < b.bytes; });
      release(&*best);
      free_.erase(best);
      best = free_.end();
    }
    if (best != free_.end()) {
      Block block = std::move(*best);
      free_.erase(best);
      return block;
    }
  }
  const uint64_t align = bytes >= kHugePage ? kHugePage : kPage;
  const uint64_t size = (bytes + align - 1) / align * align;
  void* data = std::aligned_alloc(align, size);
  if (data == nullptr) return {};
  if (align == kHugePage) ::madvise(data, size, MADV_HUGEPAGE);  // advice: failing changes nothing
  return {static_cast<std::byte*>(data), size, nullptr};
}

void Scratch::give(Block block) {
  if (block.data == nullptr) return;
  std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace bitrail::engine
