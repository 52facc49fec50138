// One rank of one communicator, driven as NCCL's proxy does: a service thread that sets up
// connections and registers memory, a progress thread with 8 steps in flight on each connection.
#pragma once

#include <cstdint>
#include <string>

#include "tests/plugin/driver/board.h"
#include "tests/plugin/driver/net.h"

namespace bitrail::test {

struct RankOptions {
  int ranks = 2;
  size_t bytes = 8 << 20;  // that each rank sends
  uint64_t seed = 1;
  uint64_t comm_id = 0x1234;
  int64_t limit_ms = 120'000;  // for the whole
  int64_t call_ms = 20'000;    // for one call: longer is "blocks"
  // This rank gives up after so many steps, with requests in flight; the others see errors or
  // nothing, and give up after abort_ms.
  int abort_rank = -1;
  uint64_t abort_steps = 20;
  int64_t abort_ms = 500;
};

// Each rank sends to the next and receives from the one before, over one connection for each
// protocol. Returns what was wrong; empty when nothing. Other ranks learn through the board.
std::string run_rank(Net& net, const RankOptions& options, int rank, Board* board);

// Ranks as threads, or as processes by fork that load the file themselves (no other threads may
// exist then).
std::string run_threads(Net& net, const RankOptions& options, Board* board);
std::string run_processes(const std::string& file, int version, const RankOptions& options,
                          Board* board);

}  // namespace bitrail::test
