#include "runtime/bootstrap/tree.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>

#include "tests/bootstrap/join.h"

namespace bitrail::bootstrap {
namespace {

using test::free_rendezvous;
using test::join_all;
using test::world_of;

constexpr int kTimeoutMs = 30'000;

struct Job {
  std::vector<std::unique_ptr<Bootstrap>> ranks;

  explicit Job(int size) {
    std::vector<World> worlds;
    const std::string rendezvous = free_rendezvous();
    for (int rank = 0; rank < size; rank++) worlds.push_back(world_of(rank, size, rendezvous));
    for (const Status& status : join_all(worlds, kTimeoutMs, &ranks)) {
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
  bool complete() const {
    for (const auto& rank : ranks) {
      if (!rank) return false;
    }
    return true;
  }
};

// Polls until this rank has failed; false when it did not within the deadline.
bool wait_for_failure(Bootstrap* bootstrap) {
  const Deadline deadline = Deadline::in_ms(kTimeoutMs);
  while (!bootstrap->failed() && !deadline.passed()) {
    pollfd entry{bootstrap->event_fd(), POLLIN, 0};
    (void)::poll(&entry, 1, 100);
    bootstrap->poll();
  }
  return bootstrap->failed();
}

class TreeSizes : public testing::TestWithParam<int> {};

TEST_P(TreeSizes, AllGatherBringsEverybodysBytesToAll) {
  const int size = GetParam();
  Job job(size);
  ASSERT_TRUE(job.complete());
  for (const size_t bytes : {0, 1, 8, 1000, size > 11 ? 2000 : 20'000}) {
    std::atomic<int> wrong{0};
    bitrail::test::spawn(size, [&](int rank) {
      std::vector<uint8_t> mine(bytes), all(bytes * static_cast<size_t>(size));
      for (size_t i = 0; i < bytes; i++) mine[i] = static_cast<uint8_t>(rank * 31 + i);
      const Status status = job.ranks[static_cast<size_t>(rank)]->allgather(
          mine.data(), bytes, all.data(), Deadline::in_ms(kTimeoutMs));
      if (!status.ok()) wrong++;
      for (size_t r = 0; r < static_cast<size_t>(size); r++) {
        if (!std::equal(mine.begin(), mine.end(), all.begin() + static_cast<ptrdiff_t>(r * bytes),
                        [&](uint8_t own, uint8_t got) {
                          return got ==
                                 static_cast<uint8_t>(own + (r - static_cast<size_t>(rank)) * 31);
                        })) {
          wrong++;
        }
      }
    });
    EXPECT_EQ(wrong, 0) << bytes << " bytes";
  }
  for (const auto& rank : job.ranks) EXPECT_FALSE(rank->failed()) << rank->failure().text;
}

// 1 alone; 2, 3, 9: a root and its children; 10, 11: first of a third level; 64 two levels; 80:
// three.
INSTANTIATE_TEST_SUITE_P(Tree, TreeSizes, testing::Values(1, 2, 3, 9, 10, 11, 64, 80));

TEST(Tree, ManyAllGathersInARowWhileOthersPoll) {
  constexpr int kSize = 12, kRounds = 200;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> pollers;
  for (const auto& rank : job.ranks) {
    pollers.emplace_back([&stop, bootstrap = rank.get()] {
      while (!stop) {
        pollfd entry{bootstrap->event_fd(), POLLIN, 0};
        (void)::poll(&entry, 1, 10);
        bootstrap->poll();
      }
    });
  }
  bitrail::test::spawn(kSize, [&](int rank) {
    for (int round = 0; round < kRounds; round++) {
      const int mine = rank * 1000 + round;
      int all[kSize] = {};
      const Status status = job.ranks[static_cast<size_t>(rank)]->allgather(
          &mine, sizeof mine, all, Deadline::in_ms(kTimeoutMs));
      for (int r = 0; r < kSize; r++) {
        if (!status.ok() || all[r] != r * 1000 + round) wrong++;
      }
    }
  });
  stop = true;
  for (std::thread& poller : pollers) poller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tree, DifferentByteCountsAreAMismatchForAll) {
  constexpr int kSize = 11;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  std::vector<Status> results(kSize);
  bitrail::test::spawn(kSize, [&](int rank) {
    const std::vector<uint8_t> mine(rank == 9 ? 8 : 4);
    std::vector<uint8_t> all(mine.size() * kSize);
    results[static_cast<size_t>(rank)] = job.ranks[static_cast<size_t>(rank)]->allgather(
        mine.data(), mine.size(), all.data(), Deadline::in_ms(kTimeoutMs));
  });
  for (const Status& status : results) EXPECT_EQ(status.code(), BITRAIL_ERR_MISMATCH);
}

TEST(Tree, ReportReachesEveryRankAndTheFirstOneStays) {
  constexpr int kSize = 75;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  job.ranks[74]->report({3, BITRAIL_ERR_ABORTED, "rank 3 has had enough"});
  bitrail::test::spawn(kSize, [&](int rank) {
    EXPECT_TRUE(wait_for_failure(job.ranks[static_cast<size_t>(rank)].get())) << "rank " << rank;
  });
  job.ranks[0]->report({1, BITRAIL_ERR_TIMEOUT, "later"});
  for (const auto& rank : job.ranks) {
    EXPECT_EQ(rank->failure().rank, 3);
    EXPECT_EQ(rank->failure().code, BITRAIL_ERR_ABORTED);
    EXPECT_EQ(rank->failure().text, "rank 3 has had enough");
    uint8_t all[kSize];
    EXPECT_EQ(rank->allgather("x", 1, all, Deadline::in_ms(100)).code(), BITRAIL_ERR_ABORTED);
  }
}

TEST(Tree, LeavingIsNotBeingLost) {
  constexpr int kSize = 20;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  job.ranks[0].reset();  // the root and an inner rank
  job.ranks[1].reset();
  for (int rank = 2; rank < kSize; rank++) {
    job.ranks[static_cast<size_t>(rank)]->poll();
    EXPECT_FALSE(job.ranks[static_cast<size_t>(rank)]->failed());
  }
  // What is left below rank 2 still hears of failures there.
  job.ranks[17]->report({17, BITRAIL_ERR_ABORTED, "abort"});
  EXPECT_TRUE(wait_for_failure(job.ranks[2].get()));
  EXPECT_TRUE(wait_for_failure(job.ranks[18].get()));
}

TEST(Tree, AllGatherWithARankThatLeftFailsAndNamesIt) {
  constexpr int kSize = 3;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  job.ranks[1].reset();
  std::vector<Status> results(kSize);
  bitrail::test::spawn(kSize, [&](int rank) {
    uint8_t all[kSize];
    if (rank == 1) return;
    results[static_cast<size_t>(rank)] =
        job.ranks[static_cast<size_t>(rank)]->allgather("x", 1, all, Deadline::in_ms(kTimeoutMs));
  });
  for (const int rank : {0, 2}) {
    EXPECT_EQ(results[static_cast<size_t>(rank)].code(), BITRAIL_ERR_PEER_LOST);
    EXPECT_EQ(job.ranks[static_cast<size_t>(rank)]->failure().rank, 1);
  }
}

TEST(Tree, WhoDoesNotComeToAnAllGatherIsNamedByAll) {
  constexpr int kSize = 12;
  Job job(kSize);
  ASSERT_TRUE(job.complete());
  std::vector<Status> results(kSize);
  bitrail::test::spawn(kSize, [&](int rank) {
    uint8_t all[kSize];
    if (rank == 10) return;
    results[static_cast<size_t>(rank)] =
        job.ranks[static_cast<size_t>(rank)]->allgather("x", 1, all, Deadline::in_ms(300));
  });
  for (int rank = 0; rank < kSize; rank++) {
    if (rank == 10) continue;
    EXPECT_EQ(results[static_cast<size_t>(rank)].code(), BITRAIL_ERR_TIMEOUT);
    EXPECT_NE(results[static_cast<size_t>(rank)].text().find("rank 10"), std::string::npos)
        << results[static_cast<size_t>(rank)].text();
  }
}

TEST(Tree, RefusesAllGathersThatDoNotFitAFrame) {
  Job job(1);
  ASSERT_TRUE(job.complete());
  std::vector<uint8_t> mine(kMaxFrame), all(kMaxFrame);
  EXPECT_EQ(job.ranks[0]->allgather(mine.data(), mine.size(), all.data(), {}).code(),
            BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_FALSE(job.ranks[0]->failed());
}

}  // namespace
}  // namespace bitrail::bootstrap
