// One rank of a CollNet communicator, driven as NCCL does: staging slots with several calls in
// flight, registered buffers, windows.
#pragma once

#include <string>
#include <vector>

#include "tests/plugin/collnet/coll.h"
#include "tests/plugin/driver/board.h"

namespace bitrail::test {

struct CollOptions {
  int ranks = 2;
  bool onebit = false;  // BITRAIL_COLLNET is the caller's to set
  uint64_t comm_id = 0x1234;
  int rounds = 12;
  size_t count = 20'000;  // elements of a user's buffer
  int64_t limit_ms = 60'000;
};

// Empty, or what was wrong. Other ranks learn through the board.
std::string drive_coll(Coll& coll, const CollOptions& options, int rank, Board* board);

// Ranks as threads, or as processes by fork that load the file themselves (no other threads may
// exist then).
std::string drive_threads(Coll& coll, const CollOptions& options, Board* board);
std::string drive_processes(const std::string& file, int version, const CollOptions& options,
                            Board* board);

// One rank's end, for tests that call the plugin themselves: joins, has registered its staging
// memory, and closes what is left.
struct CollRank {
  Coll* coll = nullptr;
  void* context = nullptr;
  void* comm = nullptr;
  void* staging_memory = nullptr;
  std::vector<float> staging;

  CollRank() : staging(4 * kSlot) {}
  CollRank(const CollRank&) = delete;
  CollRank& operator=(const CollRank&) = delete;
  ~CollRank();
  // Throws Broken.
  void join(Coll* with, int ranks, int rank, uint64_t comm_id, Board* board, int64_t limit_ms);
  void* register_floats(std::vector<float>& values) const;
  // Calls again while there is no room; the request.
  void* reduce(float* send, float* receive, size_t count, void* send_memory,
               void* receive_memory) const;
  // The code that test() ends with, or kInProgress after `ms`.
  nccl::Result finish(void* request, size_t bytes, int64_t ms = 60'000) const;

  static constexpr size_t kSlot = 4096;  // floats; two to send, two to receive
};

}  // namespace bitrail::test
