// The configuration file: NAME=VALUE lines, '#' starts a comment line, blank lines are skipped.
// Quotes are not special; blanks around name and value are cut. Names are BITRAIL_* and, for NCCL
// (plugin/env), NCCL_*.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/variables.h"

namespace bitrail::config {

// `name` is the file's, for messages ("job.conf:3: ..."). Pure: no I/O.
Status parse_file(std::string_view text, const std::string& name,
                  std::vector<Assignment>* assignments);
// Reads and parses; files above 1 MiB are refused.
Status read_file(const std::string& path, std::vector<Assignment>* assignments);

}  // namespace bitrail::config
