// Text to numbers and words, strictly: the whole text must be the value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bitrail::config {

// Decimal, optional '-'; and for sizes one of the suffixes K, M, G (powers of 1024).
bool parse_integer(std::string_view text, int64_t* value);
// A finite decimal number, exponent allowed.
bool parse_real(std::string_view text, double* value);
// *value: the word of "A|B|C" that equals text but for case.
bool parse_choice(std::string_view text, std::string_view choices, std::string* value);

}  // namespace bitrail::config
