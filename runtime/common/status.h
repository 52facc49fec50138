// The result of an internal call: a code, and a text when it failed.
//
// Texts name rank, peer, address and the BITRAIL_* variable to change. OK carries nothing and costs
// a pointer.
#pragma once

#include <bitrail/bitrail.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace bitrail {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(bitrail_status_t code, std::string text)
      : code_(code), text_(std::make_unique<std::string>(std::move(text))) {}
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;
  Status(const Status& other) { *this = other; }
  Status& operator=(const Status& other) {
    if (this != &other) {
      code_ = other.code_;
      text_ = other.text_ ? std::make_unique<std::string>(*other.text_) : nullptr;
    }
    return *this;
  }

  bool ok() const { return code_ == BITRAIL_OK; }
  bitrail_status_t code() const { return code_; }
  std::string text() const { return text_ ? *text_ : std::string(); }

 private:
  bitrail_status_t code_ = BITRAIL_OK;
  std::unique_ptr<std::string> text_;
};

// Failure with a formatted text.
template <typename... Args>
Status failure(bitrail_status_t code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
}

// Returns from the calling function when `expression` failed.
#define BITRAIL_TRY(expression)                              \
  do {                                                       \
    ::bitrail::Status bitrail_try_status = (expression);     \
    if (!bitrail_try_status.ok()) return bitrail_try_status; \
  } while (false)

}  // namespace bitrail
