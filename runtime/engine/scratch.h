// Scratch memory that is kept between calls, so that a call touches warm pages and allocates
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/transport/transport.h"

namespace bitrail::engine {

class Scratch {
 public:
  struct Block {
    std::byte* data = nullptr;
    uint64_t bytes = 0;
    std::shared_ptr<transport::Memory> memory;  // its registration; null: none
  };
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // A block of at least `bytes`, aligned to 64; data null when memory is short. Give it back with
  // give().
  Block take(uint64_t bytes);
  void give(Block block);

 private:
  std::mutex mutex_;
  std::vector<Block> free_;  // a handful: as many as calls were in flight at once
};

}  // namespace bitrail::engine
