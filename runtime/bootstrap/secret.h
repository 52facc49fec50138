// A fresh job secret.
#pragma once

#include <string>

#include "runtime/common/status.h"

namespace bitrail::bootstrap {

// 32 random bytes as 64 hexadecimal digits.
Status random_secret(std::string* secret);

}  // namespace bitrail::bootstrap
