// Command line of `bitrail perf`: nccl-tests' flags where there is one, ours otherwise.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <string>

namespace bitrail::tool {

struct PerfOptions {
  std::string collective;
  size_t min_bytes = 8, max_bytes = size_t{128} << 20;
  size_t step_bytes = 0;  // 0: multiply by step_factor instead
  int step_factor = 2;
  int iterations = 20, warmup = 5;
  int calls = 0;  // calls back to back in one timed iteration; 0: enough for about 0.2 ms
  bitrail_type_t type = BITRAIL_FLOAT32;
  bitrail_op_t op = BITRAIL_SUM;
  int root = 0;
  bool check = true;
  std::string algo;  // "" chooses; "onebit" is the compressed collective
  bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
  size_t block = 0;
  std::string transport;  // as BITRAIL_TRANSPORT; "" leaves it
  std::string json_file;
  bool out_of_place_only = false;
  bool phases = false;  // of an allreduce: its halves alone, too
  bool loop = false;    // until interrupted
  bool watch = false;   // after an error: show that nothing writes into the buffers
};

// Fills *options. Returns false when the process should end with *exit_code (help was asked for, or
// the command line is wrong; the text is printed).
bool parse_perf_options(int argc, char** argv, PerfOptions* options, int* exit_code);

const char* type_name(bitrail_type_t type);
const char* op_name(bitrail_op_t op);

}  // namespace bitrail::tool
