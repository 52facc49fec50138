#include "runtime/bootstrap/secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace bitrail::bootstrap {

Status random_secret(std::string* secret) {
  std::array<uint8_t, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return failure(BITRAIL_ERR_SYSTEM, "getrandom: {}", std::strerror(errno));
  }
  secret->clear();
  for (const uint8_t byte : bytes) *secret += fmt::format("{:02x}", byte);
  return {};
}

}  // namespace bitrail::bootstrap
