// Which messages travel over a connection: the same random pieces at both ends, from a seed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::test {

constexpr int kSteps = 8;  // in flight, as NCCL_STEPS
constexpr int kMaxGroup = 8;

// What a connection's buffers look like in NCCL.
enum class Protocol { ll, simple, grouped };

constexpr size_t slot_bytes(Protocol protocol) {
  return protocol == Protocol::ll ? 32 << 10 : 512 << 10;
}

struct Step {
  int count = 1;  // receives posted together
  int tags[kMaxGroup] = {};
  size_t bytes[kMaxGroup] = {};   // as sent
  size_t offset[kMaxGroup] = {};  // in the slot
  size_t capacity = 0;            // of each receive
  int send_order[kMaxGroup] = {};
};

// Step `index` of a connection with this seed.
Step plan_step(uint64_t seed, uint64_t index, Protocol protocol);

// Writes a message's bytes, or checks that they are there.
void fill(void* data, size_t bytes, uint64_t seed);
bool matches(const void* data, size_t bytes, uint64_t seed);
constexpr uint64_t message_seed(uint64_t seed, uint64_t index, int part) {
  return (seed * 1'000'003 + index) * 8 + static_cast<uint64_t>(part);
}

}  // namespace bitrail::test
