// What goes wrong between ranks: each is an error at every rank, in time, and nothing is written
// afterwards.
#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "runtime/common/clock.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

constexpr int64_t kShortMs = 1000;

TEST(Failure, CountMismatchIsToldToAll) {
  test::World job(3);
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> data(200000, 1.0f);
    const size_t n = rank == 1 ? 150000 : 200000;
    EXPECT_EQ(
        bitrail_allreduce(comm, data.data(), data.data(), n, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
        BITRAIL_ERR_MISMATCH);
    EXPECT_NE(std::string(bitrail_last_error()).find("disagree"), std::string::npos)
        << bitrail_last_error();
    // The first failure is what every later call reports.
    EXPECT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_ERR_MISMATCH);
  });
}

TEST(Failure, DifferentAlgorithmsAreFoundThoughNoMessageMatches) {
  test::World job(2);
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> data(100000, 1.0f);
    // 8 bytes by recursive doubling against 400,000 by the direct algorithm.
    const size_t n = rank == 0 ? 2 : 100000;
    EXPECT_EQ(
        bitrail_allreduce(comm, data.data(), data.data(), n, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
        BITRAIL_ERR_MISMATCH);
  });
}

TEST(Failure, DifferentCollectivesAreFound) {
  test::World job(4);
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> data(4000, 1.0f);
    // Once ranks are connected; before, the one that waits for a connection names whom it waits
    // for.
    std::vector<float> all(4), every(4);
    ASSERT_EQ(bitrail_alltoall(comm, all.data(), every.data(), 1, BITRAIL_FLOAT32, nullptr),
              BITRAIL_OK);
    // Rank 3 serves a tree from rank 0 while the others double.
    const bitrail_status_t status =
        rank == 3
            ? bitrail_broadcast(comm, data.data(), data.data(), 4000, BITRAIL_FLOAT32, 0, nullptr)
            : bitrail_allreduce(comm, data.data(), data.data(), 4000, BITRAIL_FLOAT32, BITRAIL_SUM,
                                nullptr);
    EXPECT_EQ(status, BITRAIL_ERR_MISMATCH) << "rank " << rank << ": " << bitrail_last_error();
  });
}

TEST(Failure, TypeMismatchOfEqualBytes) {
  test::World job(2);
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<double> data(64, 1.0);
    EXPECT_EQ(bitrail_allreduce(comm, data.data(), data.data(), 64,
                                rank == 0 ? BITRAIL_FLOAT32 : BITRAIL_INT32, BITRAIL_SUM, nullptr),
              BITRAIL_ERR_MISMATCH);
  });
}

TEST(Failure, LostMessagesEndInATimeoutThatNamesTheRank) {
  test::World job(2, {}, kShortMs);
  job.run([&](int rank, bitrail_comm_t comm) {
    float x = 1;
    ASSERT_EQ(bitrail_allreduce(comm, &x, &x, 1, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_OK);
    job.wire.faults.lose_every = 1;
    EXPECT_EQ(bitrail_allreduce(comm, &x, &x, 1, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_ERR_TIMEOUT);
    const std::string text = bitrail_last_error();
    EXPECT_NE(text.find("BITRAIL_TIMEOUT_MS"), std::string::npos) << text;
    EXPECT_NE(text.find("waiting for rank"), std::string::npos) << text;
    (void)rank;
  });
}

TEST(Failure, LostRankIsNamedByAllSurvivorsAndBuffersStayAlone) {
  test::World job(4);
  std::atomic<int> through{0};  // ranks that have done the first call
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> data(100000, 1.0f), out(100000, 0.0f);
    ASSERT_EQ(bitrail_allreduce(comm, data.data(), out.data(), data.size(), BITRAIL_FLOAT32,
                                BITRAIL_SUM, nullptr),
              BITRAIL_OK);
    through++;
    if (rank == 2) {  // takes no part in the next one
      const Deadline deadline = Deadline::in_ms(10'000);
      while (through < 4 && !deadline.passed()) std::this_thread::yield();
      job.party.lose(2);
      return;
    }
    EXPECT_EQ(bitrail_allreduce(comm, data.data(), out.data(), data.size(), BITRAIL_FLOAT32,
                                BITRAIL_SUM, nullptr),
              BITRAIL_ERR_PEER_LOST);
    EXPECT_NE(std::string(bitrail_last_error()).find("rank 2"), std::string::npos);
    const std::vector<float> before = out;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(out, before);
  });
}

TEST(Failure, AbortEndsWaitingRanks) {
  test::World job(2);
  job.run([&](int rank, bitrail_comm_t comm) {
    if (rank == 0) {
      EXPECT_EQ(bitrail_comm_abort(comm, "enough"), BITRAIL_OK);
    }
    EXPECT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_ERR_ABORTED);
    EXPECT_NE(std::string(bitrail_last_error()).find("enough"), std::string::npos);
  });
}

TEST(Failure, NoRoomAndOvertakingAreNotFailures) {
  test::World job(3);
  job.wire.faults.refuse_every = 3;
  job.wire.faults.shuffle = 1;
  job.run([&](int rank, bitrail_comm_t comm) {
    std::vector<float> data(500000);
    for (int round = 0; round < 3; round++) {
      for (size_t i = 0; i < data.size(); i++)
        data[i] = static_cast<float>(rank + static_cast<int>(i % 5));
      ASSERT_EQ(bitrail_allreduce(comm, data.data(), data.data(), data.size(), BITRAIL_FLOAT32,
                                  BITRAIL_SUM, nullptr),
                BITRAIL_OK);
      for (size_t i = 0; i < data.size(); i++)
        ASSERT_EQ(data[i], static_cast<float>(3 + 3 * static_cast<int>(i % 5)));
    }
  });
}

struct OnebitCase {
  bitrail_scale_t scale;
  float poison;
};

TEST(Refusal, NotFiniteDataIsRefusedOnAllRanksAndNothingChanges) {
  for (const OnebitCase c : {OnebitCase{BITRAIL_SCALE_SEGMENT, NAN},
                             {BITRAIL_SCALE_SEGMENT, INFINITY},
                             {BITRAIL_SCALE_BLOCK, NAN},
                             {BITRAIL_SCALE_BLOCK, -INFINITY}}) {
    test::World job(3);
    job.run([&](int rank, bitrail_comm_t comm) {
      const size_t counts[2] = {1000, 70000};
      bitrail_onebit_layout_t layout = {sizeof(layout), 2, counts, c.scale, BITRAIL_NORM_L2, 0};
      bitrail_error_state_t state = nullptr;
      ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
      std::vector<float> data(71000), out(71000, 5.0f);
      for (size_t i = 0; i < data.size(); i++) data[i] = static_cast<float>(i % 13) - 6.5f;
      bitrail_onebit_call_t call = {sizeof(call), data.data(), out.data(), BITRAIL_FLOAT32,
                                    nullptr,      nullptr,     nullptr};
      ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK)
          << bitrail_last_error();
      std::vector<char> saved(bitrail_error_state_bytes(state)), after(saved.size());
      ASSERT_EQ(bitrail_error_state_save(state, saved.data(), saved.size()), BITRAIL_OK);
      const std::vector<float> before = out;
      if (rank == 1) data[40000] = c.poison;
      EXPECT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_ERR_NOT_FINITE);
      EXPECT_EQ(out, before);
      ASSERT_EQ(bitrail_error_state_save(state, after.data(), after.size()), BITRAIL_OK);
      EXPECT_EQ(saved, after);
      bitrail_counters_t counters = {sizeof(counters), 0, 0, 0, 0, 0, 0, 0, 0};
      ASSERT_EQ(bitrail_comm_counters(comm, &counters), BITRAIL_OK);
      EXPECT_EQ(counters.refused, 1u);
      // And the job goes on.
      if (rank == 1) data[40000] = 1;
      EXPECT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK);
      EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
    });
  }
}

TEST(ErrorState, IsBrokenByACallThatFailsHalfWay) {
  test::World job(2, {}, kShortMs);
  job.run([&](int, bitrail_comm_t comm) {
    const size_t counts[1] = {5000};
    bitrail_onebit_layout_t layout = {sizeof(layout),  1, counts, BITRAIL_SCALE_SEGMENT,
                                      BITRAIL_NORM_L2, 0};
    bitrail_error_state_t state = nullptr;
    ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
    std::vector<float> data(5000, 1.0f);
    bitrail_onebit_call_t call = {sizeof(call), data.data(), data.data(), BITRAIL_FLOAT32,
                                  nullptr,      nullptr,     nullptr};
    ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK) << bitrail_last_error();
    job.wire.faults.lose_every = 2;
    EXPECT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_ERR_TIMEOUT);
    EXPECT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_ERR_BROKEN);
    std::vector<char> saved(bitrail_error_state_bytes(state));
    EXPECT_EQ(bitrail_error_state_save(state, saved.data(), saved.size()), BITRAIL_ERR_BROKEN);
    EXPECT_EQ(bitrail_error_state_reset(state), BITRAIL_OK);
    EXPECT_EQ(bitrail_error_state_save(state, saved.data(), saved.size()), BITRAIL_OK);
    EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
  });
}

}  // namespace
}  // namespace bitrail
