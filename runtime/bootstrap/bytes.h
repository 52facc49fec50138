// Little-endian integers in byte buffers, whatever the host's order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitrail::bootstrap {

template <typename T>
void put(std::vector<uint8_t>* out, T value) {
  for (size_t i = 0; i < sizeof(T); i++) {
    out->push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// A text of at most 65,535 bytes: length, bytes.
inline void put_text(std::vector<uint8_t>* out, std::string_view text) {
  text = text.substr(0, UINT16_MAX);
  put(out, static_cast<uint16_t>(text.size()));
  out->insert(out->end(), text.begin(), text.end());
}

// Reads from the front; once something was missing, good() is false and all further values are 0.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : left_(bytes) {}

  template <typename T>
  T get() {
    const std::span<const uint8_t> bytes = take(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size(); i++) value |= uint64_t{bytes[i]} << (8 * i);
    return static_cast<T>(value);
  }
  std::string text() {
    const std::span<const uint8_t> bytes = take(get<uint16_t>());
    return {bytes.begin(), bytes.end()};
  }
  std::span<const uint8_t> take(size_t count) {
    if (count > left_.size()) {
      good_ = false;
      left_ = {};
      return {};
    }
    const std::span<const uint8_t> front = left_.first(count);
    left_ = left_.subspan(count);
    return front;
  }
  std::span<const uint8_t> left() const { return left_; }
  bool good() const { return good_; }
  bool finished() const { return good_ && left_.empty(); }

 private:
  std::span<const uint8_t> left_;
  bool good_ = true;
};

}  // namespace bitrail::bootstrap
