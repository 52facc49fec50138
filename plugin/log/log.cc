#include "plugin/log/log.h"

#include <atomic>

#include "runtime/trace/log.h"

namespace bitrail::plugin {
namespace {

constinit std::atomic<nccl::Logger> g_logger{nullptr};

// What the transports say. NCCL shows it by its own level.
void from_runtime(log::Level level, const std::string& text) {
  const nccl::LogLevel theirs = level == log::Level::warn   ? nccl::kLogWarn
                                : level == log::Level::info ? nccl::kLogInfo
                                                            : nccl::kLogTrace;
  log_line(theirs, nccl::kLogNet, "transport", text);
}

}  // namespace

void set_logger(nccl::Logger logger) {
  if (logger == nullptr) return;
  g_logger.store(logger, std::memory_order_release);
  log::set_sink(from_runtime);
}

void log_line(nccl::LogLevel level, unsigned long flags, const char* function,
              const std::string& text) {
  const nccl::Logger logger = g_logger.load(std::memory_order_acquire);
  if (logger != nullptr) logger(level, flags, function, 0, "NET/BitRail : %s", text.c_str());
}

nccl::Result result_of(bitrail_status_t code) {
  switch (code) {
    case BITRAIL_OK:
      return nccl::kSuccess;
    case BITRAIL_ERR_INVALID_ARGUMENT:
    case BITRAIL_ERR_UNSUPPORTED:
    case BITRAIL_ERR_CONFIG:
      return nccl::kInvalidArgument;
    case BITRAIL_ERR_TIMEOUT:
    case BITRAIL_ERR_PEER_LOST:
    case BITRAIL_ERR_MISMATCH:
    case BITRAIL_ERR_ABORTED:
    case BITRAIL_ERR_SECRET_MISSING:
    case BITRAIL_ERR_SECRET_WRONG:
    case BITRAIL_ERR_JOB_ID:
    case BITRAIL_ERR_RANK_TAKEN:
    case BITRAIL_ERR_WORLD_SIZE:
    case BITRAIL_ERR_PROTOCOL:
      return nccl::kRemoteError;
    case BITRAIL_ERR_INTERNAL:
      return nccl::kInternalError;
    default:
      return nccl::kSystemError;
  }
}

nccl::Result report(const char* function, const Status& status) {
  log_line(nccl::kLogWarn, nccl::kLogNet, function, fmt::format("{}: {}", function, status.text()));
  return result_of(status.code());
}

}  // namespace bitrail::plugin
