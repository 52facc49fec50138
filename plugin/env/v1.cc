// Version 1 of the env plugin: the process's environment, then the file beside it. NCCL asks from
// several threads; what it was told stays where it is until the process ends.
#include <cstdlib>
#include <exception>
#include <string_view>

#include "plugin/abi/env_v1.h"
#include "plugin/env/values.h"
#include "plugin/exports/exports.h"
#include "runtime/trace/log.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

// Never destroyed, and read once: NCCL may initialize a plugin again.
const Values& values() {
  static const Values* const known = [] {
    auto* read = new Values;
    const Status status = nccl_values(read);
    // This version of the table brings no logger.
    if (!status.ok())
      log::warn("NCCL takes its variables from the environment only: {}", status.text());
    return read;
  }();
  return *known;
}

Result init(uint8_t /*major*/, uint8_t /*minor*/, uint8_t /*patch*/, const char* /*suffix*/) {
  try {
    (void)values();
    return nccl::kSuccess;
  } catch (const std::exception&) {
    return nccl::kSystemError;
  }
}

Result finalize() { return nccl::kSuccess; }

const char* get_env(const char* name) {
  if (name == nullptr) return nullptr;
  if (const char* set = std::getenv(name)) return set;
  try {
    const auto found = values().find(std::string_view(name));
    return found == values().end() ? nullptr : found->second.c_str();
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::EnvV1 ncclEnvPlugin_v1 = {
    .name = "BitRail",
    .init = bitrail::plugin::init,
    .finalize = bitrail::plugin::finalize,
    .get_env = bitrail::plugin::get_env,
};
