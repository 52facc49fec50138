// The rows of BITRAIL_TUNER_CSV: a user's own choices.
//
//   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
//   allreduce,0,32768,tree,ll,4,-1,-1,-1,-1
//
// the columns of the example tuner that comes with NCCL. -1, * or an empty field is any value (of
// channels: NCCL's); the last four may be left out. Blanks, empty lines, lines that begin with #
// and a line of headings are passed over.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::plugin::tuner {

inline constexpr int kAny = -1;

struct Row {
  int line = 0;
  int function = kAny;
  uint64_t min_bytes = 0, max_bytes = UINT64_MAX;  // both included
  int algorithm = kAny, protocol = kAny;
  int channels = 0;  // 0: NCCL's
  int64_t nodes = kAny, ranks = kAny, pipe_ops = kAny, registered = kAny;
};

inline constexpr size_t kMaxCsvBytes = size_t{1} << 20, kMaxRows = 4096, kMaxProblems = 20;

// A row that cannot be used is left out and named in *problems, "NAME:LINE: reason"; at most
// kMaxProblems and one that says how many more.
void read_csv(std::string_view text, const std::string& name, std::vector<Row>* rows,
              std::vector<std::string>* problems);
// BITRAIL_ERR_CONFIG for a file that cannot be read or is too large.
Status read_csv_file(const std::string& path, std::vector<Row>* rows,
                     std::vector<std::string>* problems);

}  // namespace bitrail::plugin::tuner
