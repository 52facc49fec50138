#include "runtime/api/counters.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "runtime/trace/log.h"

namespace bitrail::api {

void write_counters(const bitrail_comm& comm) {
  std::string path = comm.settings.counters_file;
  if (path.empty() || comm.engine == nullptr) return;
  const size_t mark = path.find("%r");
  if (mark != std::string::npos) path.replace(mark, 2, std::to_string(comm.world.rank));
  const engine::Totals& totals = comm.engine->totals();
  const nlohmann::ordered_json line = {{"rank", comm.world.rank},
                                       {"world_size", comm.world.size},
                                       {"launcher", comm.world.launcher},
                                       {"transport", comm.transport},
                                       {"calls", totals.calls.load()},
                                       {"raw_bytes", totals.raw_bytes.load()},
                                       {"wire_bytes_sent", totals.sent_bytes.load()},
                                       {"wire_bytes_received", totals.received_bytes.load()},
                                       {"messages_sent", totals.messages.load()},
                                       {"refused", totals.refused.load()},
                                       {"failures", totals.failures.load()},
                                       {"time_ns", totals.time_ns()}};
  // One write in append mode: lines of several ranks do not mix.
  const std::string text = line.dump() + "\n";
  FILE* file = std::fopen(path.c_str(), "a");
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file) != text.size())
    log::warn("BITRAIL_COUNTERS: cannot write {}: {}", path, std::strerror(errno));
  if (file != nullptr) std::fclose(file);
}

}  // namespace bitrail::api
