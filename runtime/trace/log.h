// One line per event on stderr: "bitrail[rank] WARN text". BITRAIL_DEBUG=WARN|INFO|TRACE; WARN by
// default.
#pragma once

#include <string>

#include "runtime/common/status.h"

namespace bitrail::log {

enum class Level : int { none = 0, warn = 1, info = 2, trace = 3 };

void set_level(Level level);
void set_rank(int rank);
// Lines go to `sink` instead of stderr; null: back to stderr.
using Sink = void (*)(Level level, const std::string& text);
void set_sink(Sink sink);
bool enabled(Level level);
void write(Level level, const std::string& text);

template <typename... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::warn)) write(Level::warn, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::info)) write(Level::info, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void trace(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::trace)) write(Level::trace, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace bitrail::log
