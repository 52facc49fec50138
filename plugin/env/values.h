// The NCCL_* lines of the file that BITRAIL_CONFIG names.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "runtime/common/status.h"

namespace bitrail::plugin {

using Values = std::map<std::string, std::string, std::less<>>;

// Empty when no file is named. The last line for a name counts.
Status nccl_values(Values* values);

}  // namespace bitrail::plugin
