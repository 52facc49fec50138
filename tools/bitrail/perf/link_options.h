// Command line of `bitrail perf bw` and `bitrail perf lat`.
#pragma once

#include <cstddef>
#include <string>

namespace bitrail::tool {

struct LinkOptions {
  bool latency = false;
  std::string transport;  // empty: BITRAIL_TRANSPORT
  size_t min_bytes = 8, max_bytes = size_t{4} << 20;
  int step_factor = 2;
  int iterations = 0;  // 0: by the size
  int warmup = 100;
  int window = 32;  // messages in flight
  bool check = true;
  std::string json_file;

  int iterations_of(size_t bytes) const;
};

// As parse_perf_options.
bool parse_link_options(int argc, char** argv, LinkOptions* options, int* exit_code);

}  // namespace bitrail::tool
