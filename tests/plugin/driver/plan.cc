#include "tests/plugin/driver/plan.h"

#include <algorithm>
#include <cstring>

namespace bitrail::test {
namespace {

uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ value >> 27) * 0x94d049bb133111ebULL;
  return value ^ value >> 31;
}

struct Random {
  uint64_t state;
  uint64_t below(uint64_t limit) {
    state = mix(state);
    return state % limit;
  }
};

// Nothing, a few bytes, any length or all that fits.
size_t draw_bytes(Random* random, size_t capacity) {
  switch (random->below(8)) {
    case 0:
      return 0;
    case 1:
      return 1 + random->below(64);
    case 2:
      return capacity;
    default:
      return random->below(capacity + 1);
  }
}

uint64_t word_at(uint64_t seed, size_t index) {
  return (seed + index) * 0x9e3779b97f4a7c15ULL ^ seed >> 7;
}

}  // namespace

Step plan_step(uint64_t seed, uint64_t index, Protocol protocol) {
  Random random{message_seed(seed, index, 0)};
  Step step;
  step.capacity = slot_bytes(protocol);
  if (protocol == Protocol::grouped) {
    step.count = 1 + static_cast<int>(random.below(kMaxGroup));
    step.capacity /= kMaxGroup;
  }
  const int base = static_cast<int>(random.below(1 << 20));
  for (int i = 0; i < step.count; i++) {
    step.tags[i] = protocol == Protocol::grouped ? base + i : 7;
    step.bytes[i] = draw_bytes(&random, step.capacity);
    step.offset[i] = static_cast<size_t>(i) * step.capacity;
    step.send_order[i] = i;
  }
  for (int i = step.count - 1; i > 0; i--) {
    std::swap(step.send_order[i], step.send_order[random.below(static_cast<uint64_t>(i) + 1)]);
  }
  return step;
}

void fill(void* data, size_t bytes, uint64_t seed) {
  auto* out = static_cast<uint8_t*>(data);
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    const uint64_t word = word_at(seed, at);
    memcpy(out + at, &word, 8);
  }
  const uint64_t last = word_at(seed, at);
  if (bytes > at) memcpy(out + at, &last, bytes - at);
}

bool matches(const void* data, size_t bytes, uint64_t seed) {
  const auto* in = static_cast<const uint8_t*>(data);
  uint64_t wrong = 0;
  size_t at = 0;
  for (; at + 8 <= bytes; at += 8) {
    uint64_t word = 0;
    memcpy(&word, in + at, 8);
    wrong |= word ^ word_at(seed, at);
  }
  const uint64_t last = word_at(seed, at);
  return wrong == 0 && (bytes == at || memcmp(in + at, &last, bytes - at) == 0);
}

}  // namespace bitrail::test
