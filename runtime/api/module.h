// Loading algorithm modules (BITRAIL_ALGO_PATH) and verifying what they register.
#pragma once

#include <string>

#include "runtime/common/status.h"

namespace bitrail::api {

// Loads each shared object of a colon-separated list once a process. Fails naming the file and what
// is wrong with it.
Status load_modules(const std::string& paths);

}  // namespace bitrail::api
