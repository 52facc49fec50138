// Ranks as threads that joined one communicator, for tests that call the plugin themselves.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

#include "tests/plugin/collnet/drive.h"
#include "tests/plugin/driver/caller.h"
#include "tests/support/spawn.h"

namespace bitrail::test {

// A variable while it lives; init() reads it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

inline std::unique_ptr<Coll> coll_of(int version) { return load_coll(PLUGIN_FILE, version); }
inline auto all_coll_versions() { return testing::Range(kOldestColl, kNewestColl + 1); }

// Runs fn(rank, end) on all ranks of one communicator.
inline void in_room(Coll* coll, int ranks, const std::function<void(int, CollRank&)>& fn,
                    uint64_t comm_id = 7) {
  Boards boards(1);
  spawn(ranks, [&](int rank) {
    CollRank end;
    try {
      end.join(coll, ranks, rank, comm_id, &boards[0], 60'000);
      fn(rank, end);
    } catch (const Broken& broken) {
      boards[0].failed++;
      ADD_FAILURE() << "rank " << rank << ": " << broken.what();
    }
    // Nobody leaves while another still needs it.
    boards[0].done++;
    const Deadline deadline = Deadline::in_ms(60'000);
    while (boards[0].done < ranks && !deadline.passed()) std::this_thread::yield();
  });
}

}  // namespace bitrail::test
