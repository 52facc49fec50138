// What DeepSpeed gets wrong and BitRail does not, for all 1-bit optimizers: numbers are those of
// the list of faults in the fact sheet that docs/optimizers.md carries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::Kind;
using test::SmallModel;

class Guards : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, Guards, ::testing::ValuesIn(test::OneBitKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

struct Small {
  SmallModel model;
  bitrail_zero_one_t intervals = test::ShortIntervals();
  Small() {
    model.options.zero_one = &intervals;
    model.options.freeze_step = 5;
  }
};

void ExpectFinite(const std::vector<float>& values) {
  for (const float value : values) ASSERT_TRUE(std::isfinite(value));
}

// NaN or Inf on one rank, in every phase and with 1 rank too: refused on all, nothing has changed,
// the next step works and replicas are equal.
TEST_P(Guards, NotFiniteOnOneRankIsRefusedOnAll) {
  for (const int world : {1, 2, 3}) {
    std::vector<std::vector<float>> last(static_cast<size_t>(world));
    test::World(world).run([&](int rank, bitrail_comm_t comm) {
      Small setup;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
      for (int step = 1; step <= 25; step++) {
        std::vector<float> gradient = test::Wanted(optimizer, comm, step);
        const bool local = bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_LOCAL;
        if (!local || rank == world - 1)
          gradient[SmallModel::kFirst + 7] = step % 2 == 0 ? std::nanf("") : HUGE_VALF;
        const std::vector<float> params = setup.model.params, m = optimizer->state.m,
                                 v = optimizer->state.v;
        ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_ERR_NOT_FINITE)
            << "step " << step;
        EXPECT_EQ(setup.model.params, params);
        EXPECT_EQ(optimizer->state.m, m);
        EXPECT_EQ(optimizer->state.v, v);
        EXPECT_EQ(bitrail_optimizer_step_count(optimizer), step - 1);
        test::Step(optimizer, comm, step);
      }
      ExpectFinite(setup.model.params);
      last[static_cast<size_t>(rank)] = setup.model.params;
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

// F7: no gradient ever in a part of a tensor, no mask. F12 with it: such a part has no say in
// LAMB's factor.
TEST_P(Guards, DeadElementsStayPut) {
  test::World(2).run([&](int, bitrail_comm_t comm) {
    Small setup;
    setup.model.group.weight_decay = 0;
    bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
    for (int step = 1; step <= 25; step++) {
      std::vector<float> gradient = test::Wanted(optimizer, comm, step);
      std::fill(gradient.end() - 500, gradient.end(), 0.0f);
      ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
    }
    for (size_t i = SmallModel::kElements - 500; i < SmallModel::kElements; i++)
      ASSERT_EQ(setup.model.params[i], 1.0f) << i;
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

// F5, empty and all-zero tensors: nothing divides by their momentum.
TEST_P(Guards, ZeroAndEmptyTensorsAreNoDivisors) {
  for (const uint32_t compat : {0u, uint32_t{BITRAIL_COMPAT_ZERO_MOMENTUM}}) {
    test::World(2).run([&](int, bitrail_comm_t comm) {
      Small setup;
      bitrail_param_segment_t segments[3] = {
          {SmallModel::kFirst, 0, nullptr}, {0, 0, nullptr}, {SmallModel::kSecond, 0, nullptr}};
      setup.model.options.segments = 3;
      setup.model.options.segment = segments;
      setup.model.options.compat = compat;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
      bitrail_status_t status = BITRAIL_OK;
      for (int step = 1; step <= 10 && status == BITRAIL_OK; step++) {
        std::vector<float> gradient = test::Wanted(optimizer, comm, step);
        std::fill_n(gradient.begin(), SmallModel::kFirst, 0.0f);
        status = bitrail_optimizer_step(optimizer, gradient.data());
      }
      const bool fails = compat != 0 && std::string(GetParam().name) == "onebit_lamb";
      EXPECT_EQ(status, fails ? BITRAIL_ERR_INVALID_ARGUMENT : BITRAIL_OK);
      ExpectFinite(setup.model.params);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

// F6: lr 0 for whole intervals, of one group and of all.
TEST_P(Guards, LearningRateZeroStandsStill) {
  std::vector<std::vector<float>> last(2);
  test::World(2).run([&](int rank, bitrail_comm_t comm) {
    Small setup;
    bitrail_param_group_t groups[2] = {setup.model.group, setup.model.group};
    setup.model.options.groups = 2;
    setup.model.options.group = groups;
    setup.model.segments[1].group = 1;
    bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
    std::vector<float> before;
    for (int step = 1; step <= 44; step++) {
      if (step == 17) {
        EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 0, 0), BITRAIL_OK);
        before = setup.model.params;
      }
      if (step == 25) {
        EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 1, 0), BITRAIL_OK);
      }
      if (step == 37) {
        for (const size_t group : {0, 1})
          EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, group, 0.01), BITRAIL_OK);
      }
      test::Step(optimizer, comm, step);
      if (step == 16 || step == 24 || step == 36) {  // local intervals of 0/1 Adam end here
        EXPECT_TRUE(optimizer->method->replicas_equal()) << step;
        if (step > 16) {
          EXPECT_TRUE(std::equal(before.begin(), before.begin() + SmallModel::kFirst,
                                 setup.model.params.begin()));
        }
      }
    }
    ExpectFinite(setup.model.params);
    last[static_cast<size_t>(rank)] = setup.model.params;
    EXPECT_TRUE(optimizer->method->replicas_equal());
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
  EXPECT_EQ(last[0], last[1]);
}

// F8: one rank alone is plain momentum, every step moves it. F9: gradients are only read.
TEST_P(Guards, OneRankMovesItsMomentumInEveryStep) {
  test::World(1).run([&](int, bitrail_comm_t comm) {
    Small setup;
    bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
    for (int step = 1; step <= 25; step++) {
      const std::vector<float> m = optimizer->state.m;
      test::Step(optimizer, comm, step);
      EXPECT_NE(optimizer->state.m, m) << "step " << step;
    }
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

// F10: bit-equal after every sync, over many of them.
TEST_P(Guards, ReplicasStayBitEqual) {
  config::Settings settings;
  settings.check_replicas = 1;
  for (const int world : {2, 3, 4}) {
    std::vector<std::vector<float>> last(static_cast<size_t>(world));
    test::World(world, settings).run([&](int rank, bitrail_comm_t comm) {
      Small setup;
      setup.model.group.weight_decay = 0.01;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
      int equal = 0;
      for (int step = 1; step <= 80; step++) {
        test::Step(optimizer, comm, step);
        equal += optimizer->method->replicas_equal() ? 1 : 0;
      }
      EXPECT_GE(equal, 25);
      last[static_cast<size_t>(rank)] = setup.model.params;
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
    for (const std::vector<float>& params : last) EXPECT_EQ(params, last[0]);
  }
}

// BITRAIL_CHECK_REPLICAS names the rank whose parameters are not the others'.
TEST_P(Guards, CheckedReplicasNameTheRankThatDiffers) {
  config::Settings settings;
  settings.check_replicas = 2;
  test::World(3, settings).run([&](int rank, bitrail_comm_t comm) {
    Small setup;
    setup.model.options.freeze_step = 100;
    if (rank == 2) setup.model.params[11] = std::nextafter(1.0f, 2.0f);
    bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, setup.model.options);
    test::Step(optimizer, comm, 1);
    EXPECT_EQ(bitrail_optimizer_step(optimizer, test::Wanted(optimizer, comm, 2).data()),
              BITRAIL_ERR_MISMATCH);
    const std::string text = bitrail_last_error();
    EXPECT_NE(text.find("rank 2 differ"), std::string::npos) << text;
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

// Report 5: the list of LAMB's factors is a copy.
TEST(Coefficients, AreACopy) {
  test::World(1).run([](int, bitrail_comm_t comm) {
    Small setup;
    bitrail_optimizer_t optimizer = test::Make(test::kOneBitLamb, comm, setup.model.options);
    test::Step(optimizer, comm, 1);
    double first[2] = {}, second[2] = {};
    ASSERT_EQ(bitrail_optimizer_lamb_coefficients(optimizer, first, 2), BITRAIL_OK);
    const double kept = first[1];
    test::Step(optimizer, comm, 2);
    ASSERT_EQ(bitrail_optimizer_lamb_coefficients(optimizer, second, 2), BITRAIL_OK);
    EXPECT_EQ(first[1], kept);
    EXPECT_NE(second[1], kept);
    EXPECT_EQ(bitrail_optimizer_lamb_coefficients(optimizer, second, 3),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    optimizer = test::Make(test::kOneBitAdam, comm, setup.model.options);
    EXPECT_EQ(bitrail_optimizer_lamb_coefficients(optimizer, second, 2), BITRAIL_ERR_UNSUPPORTED);
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

}  // namespace
}  // namespace bitrail
