#include "optimizers/checkpoint/checksum.h"

#include <fmt/core.h>

#include <charconv>

// Compiled in here, so that nothing is linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bitrail::checkpoint {

uint64_t Checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::string ToHex(uint64_t value) { return fmt::format("{:016x}", value); }

bool FromHex(std::string_view text, uint64_t* value) {
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != text.npos) return false;
  return std::from_chars(text.data(), text.data() + text.size(), *value, 16).ec == std::errc();
}

}  // namespace bitrail::checkpoint
