#include "runtime/trace/log.h"

#include <unistd.h>

#include <atomic>

namespace bitrail::log {
namespace {

// Constant-initialized, so usable before and after main().
constinit std::atomic<int> current_level{static_cast<int>(Level::warn)};
constinit std::atomic<int> current_rank{-1};
constinit std::atomic<Sink> current_sink{nullptr};

const char* name(Level level) {
  switch (level) {
    case Level::none:
      return "NONE";
    case Level::warn:
      return "WARN";
    case Level::info:
      return "INFO";
    case Level::trace:
      return "TRACE";
  }
  return "?";
}

}  // namespace

void set_level(Level level) {
  current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}
void set_rank(int rank) { current_rank.store(rank, std::memory_order_relaxed); }
void set_sink(Sink sink) { current_sink.store(sink, std::memory_order_release); }
bool enabled(Level level) {
  return level != Level::none &&
         static_cast<int>(level) <= current_level.load(std::memory_order_relaxed);
}

// One write() a line: lines of several ranks on one terminal do not mix.
void write(Level level, const std::string& text) {
  if (const Sink sink = current_sink.load(std::memory_order_acquire)) return sink(level, text);
  const int rank = current_rank.load(std::memory_order_relaxed);
  std::string line = rank < 0 ? fmt::format("bitrail {} ", name(level))
                              : fmt::format("bitrail[{}] {} ", rank, name(level));
  for (const char c : text) line.push_back(c == '\n' || c == '\r' ? ' ' : c);
  line.push_back('\n');
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) return;  // stderr is closed or full: a log line is not worth more
    done += static_cast<size_t>(n);
  }
}

}  // namespace bitrail::log
