// NCCL's logger, and what becomes of a failure: one line there and a result code.
#pragma once

#include <string>

#include "plugin/abi/types.h"
#include "runtime/common/status.h"

namespace bitrail::plugin {

// NCCL gives its logger to init(); null turns lines off. The transports' lines go there too.
void set_logger(nccl::Logger logger);

void log_line(nccl::LogLevel level, unsigned long flags, const char* function,
              const std::string& text);

template <typename... Args>
void info(const char* function, fmt::format_string<Args...> format, Args&&... args) {
  log_line(nccl::kLogInfo, nccl::kLogInit | nccl::kLogNet, function,
           fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(const char* function, fmt::format_string<Args...> format, Args&&... args) {
  log_line(nccl::kLogWarn, nccl::kLogNet, function,
           fmt::format(format, std::forward<Args>(args)...));
}

// Peers are kRemoteError, devices and the system kSystemError, callers kInvalidArgument.
nccl::Result result_of(bitrail_status_t code);
// Writes one line and gives the code. Not for OK.
nccl::Result report(const char* function, const Status& status);
// The same for a caller's mistake.
template <typename... Args>
nccl::Result refuse(const char* function, fmt::format_string<Args...> format, Args&&... args) {
  return report(function,
                failure(BITRAIL_ERR_INVALID_ARGUMENT, format, std::forward<Args>(args)...));
}

}  // namespace bitrail::plugin
