// What the recorded trajectories do not cover: refusal, memory, counting, dead elements, failures.
#include "optimizers/onebit_adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::SmallModel;

using test::Step;
using test::Wanted;

uint64_t Calls(bitrail_comm_t comm) { return test::Counters(comm).calls; }

class Ranks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(, Ranks, ::testing::Values(1, 2, 3, 4),
                         ::testing::PrintToStringParamName());

// Beyond Adam's 8 bytes: 4 a padded element for the worker errors, 4 / W for the server errors.
TEST_P(Ranks, MemoryIsWhatItSays) {
  const auto world = static_cast<size_t>(GetParam());
  const size_t quantum = std::max(world * std::lcm(world, size_t{8}), size_t{1});
  size_t padded = 0;
  for (const size_t count : {SmallModel::kFirst, SmallModel::kSecond}) {
    padded += (count + quantum - 1) / quantum * quantum;
  }
  const size_t errors = world == 1 ? 0 : 4 * padded + 4 * padded / world;
  test::World(GetParam()).run([&](int, bitrail_comm_t comm) {
    SmallModel model;
    bitrail_optimizer_t optimizer = nullptr;
    ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
    const size_t expected = 8 * SmallModel::kElements + errors;
    EXPECT_EQ(bitrail_optimizer_state_bytes(optimizer), expected);
    for (int step = 1; step <= 4; step++) Step(optimizer, comm, step);
    EXPECT_EQ(bitrail_optimizer_state_bytes(optimizer), expected) << "after steps";
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

// freeze_step counts plainly without the init call, and one less with it; at least one step is in
// full precision.
TEST_P(Ranks, FreezesWhenItSays) {
  struct Case {
    int64_t freeze_step;
    int init_call;
    int warm_up;
  };
  for (const Case& one :
       {Case{3, 0, 3}, Case{3, 1, 2}, Case{2, 1, 1}, Case{1, 1, 1}, Case{0, 0, 1}, Case{0, 1, 1}}) {
    test::World(GetParam()).run([&](int, bitrail_comm_t comm) {
      SmallModel model;
      model.options.freeze_step = one.freeze_step;
      model.options.init_call = one.init_call;
      bitrail_optimizer_t optimizer = nullptr;
      ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
      EXPECT_EQ(bitrail_optimizer_step_count(optimizer), one.init_call);
      EXPECT_EQ(model.params, std::vector<float>(SmallModel::kElements, 1.0f));
      for (int step = 1; step <= 5; step++) {
        const bool local = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_LOCAL;
        EXPECT_EQ(local, step > one.warm_up) << "step " << step;
        Step(optimizer, comm, step);
        EXPECT_EQ(bitrail_optimizer_frozen(optimizer), step >= one.warm_up);
      }
      EXPECT_EQ(bitrail_optimizer_step_count(optimizer), 5 + one.init_call);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

TEST_P(Ranks, OneExchangeAStepCarriesAllTensors) {
  const uint64_t exchange = GetParam() == 1 ? 0 : 1;
  test::World(GetParam()).run([&](int, bitrail_comm_t comm) {
    SmallModel model;
    bitrail_optimizer_t optimizer = nullptr;
    ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
    for (int step = 1; step <= 5; step++) {
      const uint64_t before = Calls(comm);
      const bool frozen = bitrail_optimizer_frozen(optimizer) != 0;
      Step(optimizer, comm, step);
      EXPECT_EQ(Calls(comm) - before, frozen ? exchange : 0) << "step " << step;
    }
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

// A NaN or Inf in one rank's gradient: all ranks refuse, nothing changes, and the next step works.
TEST_P(Ranks, RefuseBadGradientsInBothPhases) {
  const int world = GetParam();
  std::vector<std::vector<float>> last(static_cast<size_t>(world));
  test::World(world).run([&](int rank, bitrail_comm_t comm) {
    SmallModel model;
    bitrail_optimizer_t optimizer = nullptr;
    ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
    for (int step = 1; step <= 4; step++) {
      for (const float bad : {std::nanf(""), -std::numeric_limits<float>::infinity()}) {
        std::vector<float> gradient = Wanted(optimizer, comm, step);
        const bool local = bitrail_optimizer_frozen(optimizer) != 0;
        // The mean of all ranks' gradients is bad everywhere; a local one only where it arose.
        if (!local || rank == world - 1) gradient[SmallModel::kFirst + 77] = bad;
        const optimizers::State before = optimizer->state;
        const std::vector<float> params = model.params;
        std::vector<float> worker, server;
        if (world > 1) {
          worker = test::ErrorsOf(optimizer)->worker;
          server = test::ErrorsOf(optimizer)->server;
        }
        const int64_t count = bitrail_optimizer_step_count(optimizer);
        EXPECT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_ERR_NOT_FINITE);
        EXPECT_EQ(optimizer->state.m, before.m);
        EXPECT_EQ(optimizer->state.v, before.v);
        EXPECT_EQ(model.params, params);
        EXPECT_EQ(bitrail_optimizer_step_count(optimizer), count);
        EXPECT_EQ(bitrail_optimizer_frozen(optimizer) != 0, local);
        if (world > 1) {
          EXPECT_EQ(test::ErrorsOf(optimizer)->worker, worker);
          EXPECT_EQ(test::ErrorsOf(optimizer)->server, server);
        }
      }
      Step(optimizer, comm, step);
    }
    last[static_cast<size_t>(rank)] = model.params;
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  for (const std::vector<float>& params : last) EXPECT_EQ(params, last[0]);
}

// Half of the second tensor never has a gradient and carries no mask: the compressor gives it
// momentum all the same, and DeepSpeed moves it by lr * momentum / eps.
TEST(OneBitAdam, DeadElementsStayUnlessAskedFor) {
  for (const uint32_t compat : {0u, uint32_t{BITRAIL_COMPAT_UPDATE_DEAD}}) {
    test::World(2).run([&](int rank, bitrail_comm_t comm) {
      SmallModel model;
      model.options.compat = compat;
      bitrail_optimizer_t optimizer = nullptr;
      ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
      for (int step = 1; step <= 10; step++) {
        // In warm-up any gradient that is the same on all ranks will do.
        const bool local = bitrail_optimizer_frozen(optimizer) != 0;
        std::vector<float> gradient = SmallModel::Gradient(step, local ? rank : 0);
        for (size_t i = SmallModel::kElements - 500; i < SmallModel::kElements; i++)
          gradient[i] = 0;
        ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
      }
      float farthest = 0;
      for (size_t i = SmallModel::kElements - 500; i < SmallModel::kElements; i++) {
        EXPECT_EQ(optimizer->state.v[i], 0.0f);
        farthest = std::max(farthest, std::fabs(model.params[i] - 1.0f));
      }
      if (compat == 0) {
        EXPECT_EQ(farthest, 0.0f);
      } else {
        EXPECT_GT(farthest, 100.0f);
      }
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

TEST(OneBitAdam, BlockScalesKeepTheRanksEqual) {
  for (const bitrail_norm_t norm : {BITRAIL_NORM_L2, BITRAIL_NORM_L1}) {
    std::vector<std::vector<float>> last(3);
    test::World(3).run([&](int rank, bitrail_comm_t comm) {
      SmallModel model;
      model.options.scale = BITRAIL_SCALE_BLOCK;
      model.options.block = 1024;
      model.options.norm = norm;
      bitrail_optimizer_t optimizer = nullptr;
      ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK)
          << bitrail_last_error();
      for (int step = 1; step <= 8; step++) Step(optimizer, comm, step);
      last[static_cast<size_t>(rank)] = model.params;
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
    EXPECT_EQ(last[1], last[0]);
    EXPECT_EQ(last[2], last[0]);
    EXPECT_NE(last[0], std::vector<float>(SmallModel::kElements, 1.0f));
  }
}

// Messages stop arriving in the compression phase: the step fails, and so does every later one.
TEST(OneBitAdam, IsBrokenAfterAnExchangeThatFailed) {
  test::World world(2, {}, /*timeout_ms=*/1000);
  world.run([&](int, bitrail_comm_t comm) {
    SmallModel model;
    bitrail_optimizer_t optimizer = nullptr;
    ASSERT_EQ(bitrail_onebit_adam_create(&optimizer, comm, &model.options), BITRAIL_OK);
    for (int step = 1; step <= 3; step++) Step(optimizer, comm, step);
    ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
    world.wire.faults.lose_every = 1;
    EXPECT_NE(bitrail_optimizer_step(optimizer, Wanted(optimizer, comm, 4).data()), BITRAIL_OK);
    const std::vector<float> params = model.params;
    EXPECT_EQ(bitrail_optimizer_step(optimizer, Wanted(optimizer, comm, 5).data()),
              BITRAIL_ERR_BROKEN);
    EXPECT_EQ(model.params, params);
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

}  // namespace
}  // namespace bitrail
