// `bitrail info --plugin FILE`: which table versions an NCCL net plugin serves, and its devices.
#pragma once

#include <string>

namespace bitrail::tool {

// The exit code: 0 when the file loads, serves a version and can be asked for its devices.
int show_plugin(const std::string& file);

}  // namespace bitrail::tool
