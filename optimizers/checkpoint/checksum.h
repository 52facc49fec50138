// XXH3 (64 bits), as text: 16 hexadecimal digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace bitrail::checkpoint {

uint64_t Checksum(const void* data, size_t bytes);

std::string ToHex(uint64_t value);
// False unless `text` is exactly 16 digits 0-9a-f.
bool FromHex(std::string_view text, uint64_t* value);

}  // namespace bitrail::checkpoint
