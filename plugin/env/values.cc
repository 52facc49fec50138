#include "plugin/env/values.h"

#include <cstdlib>

#include "runtime/config/file.h"

namespace bitrail::plugin {

Status nccl_values(Values* values) {
  values->clear();
  const char* file = std::getenv("BITRAIL_CONFIG");
  if (file == nullptr || *file == 0) return {};
  std::vector<config::Assignment> assignments;
  BITRAIL_TRY(config::read_file(file, &assignments));
  for (config::Assignment& entry : assignments) {
    if (!config::is_other(entry.name) || entry.value.empty()) continue;
    (*values)[entry.name] = std::move(entry.value);
  }
  return {};
}

}  // namespace bitrail::plugin
