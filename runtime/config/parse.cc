#include "runtime/config/parse.h"

#include <strings.h>

#include <charconv>
#include <cmath>

namespace bitrail::config {

bool parse_integer(std::string_view text, int64_t* value) {
  int shift = 0;
  if (!text.empty()) {
    const char last = text.back();
    if (last == 'K' || last == 'k') shift = 10;
    if (last == 'M' || last == 'm') shift = 20;
    if (last == 'G' || last == 'g') shift = 30;
    if (shift != 0) text.remove_suffix(1);
  }
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return false;
  return !__builtin_mul_overflow(number, int64_t{1} << shift, value);
}

bool parse_real(std::string_view text, double* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty() &&
         std::isfinite(*value);
}

bool parse_choice(std::string_view text, std::string_view choices, std::string* value) {
  while (!choices.empty()) {
    const std::string_view word = choices.substr(0, choices.find('|'));
    choices.remove_prefix(word.size() == choices.size() ? choices.size() : word.size() + 1);
    if (word.size() == text.size() && strncasecmp(word.data(), text.data(), word.size()) == 0) {
      *value = word;
      return true;
    }
  }
  return false;
}

}  // namespace bitrail::config
