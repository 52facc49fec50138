// Pipeline stages x data-parallel ranks (F4; reports 7 to 9): every stage has an optimizer over a
// communicator of its own, stages enter at different times and different numbers of calls, and
// after the freeze no full-precision gradient travels. Layouts, non_freeze and sizes beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::Kind;
using test::SmallModel;

struct Grid {
  int stages, ranks;
};

class Grids : public ::testing::TestWithParam<Grid> {};
INSTANTIATE_TEST_SUITE_P(
    , Grids, ::testing::Values(Grid{1, 2}, Grid{1, 4}, Grid{2, 2}, Grid{4, 2}, Grid{2, 3}),
    [](const auto& one) {
      return std::to_string(one.param.stages) + "x" + std::to_string(one.param.ranks);
    });

// Bytes that one exchange of the small model sends from a rank: signs, scales, and a flag with
// each.
uint64_t ExchangeBytes(size_t world) {
  const size_t quantum = std::max(world * std::lcm(world, size_t{8}), size_t{1});
  size_t padded = 0;
  for (const size_t count : {SmallModel::kFirst, SmallModel::kSecond})
    padded += (count + quantum - 1) / quantum * quantum;
  return 2 * (world - 1) * (padded / (8 * world) + 2 * 4 + 4);
}

void RunStage(int stage, int ranks) {
  test::World(ranks).run([&](int rank, bitrail_comm_t comm) {
    SmallModel model;
    model.options.freeze_step = 3;
    bitrail_optimizer_t optimizer = test::Make(test::kOneBitAdam, comm, model.options);
    uint64_t full = 0, compressed = 0;
    const int steps = 6 + 2 * stage;
    for (int step = 1; step <= steps; step++) {
      std::this_thread::sleep_for(std::chrono::milliseconds((stage + rank) % 3));
      std::vector<float> gradient = SmallModel::Gradient(step, rank);
      const uint64_t before = test::Counters(comm).wire_bytes_sent;
      if (bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_MEAN) {
        ASSERT_EQ(bitrail_allreduce(comm, gradient.data(), gradient.data(), gradient.size(),
                                    BITRAIL_FLOAT32, BITRAIL_AVG, nullptr),
                  BITRAIL_OK);
      }
      const uint64_t between = test::Counters(comm).wire_bytes_sent;
      ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
      const uint64_t after = test::Counters(comm).wire_bytes_sent;
      if (step > 3) {
        full += between - before;
        compressed += after - between;
      } else {
        EXPECT_GT(between - before, SmallModel::kElements);
        EXPECT_EQ(after, between);
      }
    }
    EXPECT_EQ(full, 0u);
    EXPECT_EQ(compressed,
              static_cast<uint64_t>(steps - 3) * ExchangeBytes(static_cast<size_t>(ranks)));
    EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  });
}

TEST_P(Grids, NoFullPrecisionTrafficAfterTheFreeze) {
  test::spawn(GetParam().stages, [](int stage) { RunStage(stage, GetParam().ranks); });
}

// Report 23: per tensor, per group and fused are the same numbers where all agree on one scale: one
// tensor that divides evenly. Otherwise they differ as documented, with the errors' own bytes.
TEST(Layouts, AreTheSameForOneTensor) {
  std::vector<std::vector<float>> results;
  for (const bitrail_layout_t layout :
       {BITRAIL_LAYOUT_PER_TENSOR, BITRAIL_LAYOUT_PER_GROUP, BITRAIL_LAYOUT_FUSED}) {
    for (const bitrail_padding_t padding : {BITRAIL_PADDING_DEEPSPEED, BITRAIL_PADDING_TIGHT}) {
      test::World(2).run([&](int rank, bitrail_comm_t comm) {
        SmallModel model;
        model.segments[0].count = 0;
        model.segments[1].count = 1024;
        model.options.layout = layout;
        model.options.padding = padding;
        bitrail_optimizer_t optimizer = test::Make(test::kOneBitAdam, comm, model.options);
        for (int step = 1; step <= 8; step++) test::Step(optimizer, comm, step);
        if (rank == 0) results.push_back(model.params);
        EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
      });
    }
  }
  for (const std::vector<float>& params : results) EXPECT_EQ(params, results[0]);
}

// Segments of a group share a scale wherever they lie; replicas stay equal in every layout.
TEST(Layouts, KeepReplicasEqual) {
  for (const Kind& kind : test::OneBitKinds()) {
    for (const bitrail_layout_t layout :
         {BITRAIL_LAYOUT_PER_TENSOR, BITRAIL_LAYOUT_PER_GROUP, BITRAIL_LAYOUT_FUSED}) {
      for (const bitrail_padding_t padding : {BITRAIL_PADDING_DEEPSPEED, BITRAIL_PADDING_TIGHT}) {
        std::vector<std::vector<float>> last(3);
        test::World(3).run([&](int rank, bitrail_comm_t comm) {
          SmallModel model;
          bitrail_param_group_t groups[2] = {model.group, model.group};
          bitrail_param_segment_t segments[4] = {
              {37, 0, nullptr}, {500, 1, nullptr}, {300, 0, nullptr}, {200, 1, nullptr}};
          model.options.groups = 2;
          model.options.group = groups;
          model.options.segments = 4;
          model.options.segment = segments;
          model.options.layout = layout;
          model.options.padding = padding;
          bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
          for (int step = 1; step <= 12; step++) test::Step(optimizer, comm, step);
          EXPECT_TRUE(optimizer->method->replicas_equal());
          const size_t units = layout == BITRAIL_LAYOUT_PER_TENSOR  ? 4
                               : layout == BITRAIL_LAYOUT_PER_GROUP ? 2
                                                                    : 1;
          EXPECT_EQ(test::ExchangeOf(optimizer).units.size(), units);
          last[static_cast<size_t>(rank)] = model.params;
          EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
        });
        EXPECT_EQ(last[1], last[0]) << kind.name;
        EXPECT_EQ(last[2], last[0]) << kind.name;
      }
    }
  }
}

// Report 2: a non_freeze group is plain Adam on mean gradients to the end.
TEST(NonFreeze, Report2IsAdamToTheEnd) {
  std::vector<float> expected;
  for (const bool onebit : {false, true}) {
    test::World(2).run([&](int rank, bitrail_comm_t comm) {
      SmallModel model;
      bitrail_param_group_t groups[2] = {model.group, model.group};
      groups[1].non_freeze = 1;
      model.segments[1].group = 1;
      model.options.groups = 2;
      model.options.group = groups;
      bitrail_optimizer_t optimizer =
          test::Make(onebit ? test::kOneBitAdam : test::kAdam, comm, model.options);
      for (int step = 1; step <= 15; step++) test::Step(optimizer, comm, step);
      if (rank == 0 && !onebit) expected = model.params;
      if (onebit) {
        for (size_t i = SmallModel::kFirst; i < SmallModel::kElements; i++)
          ASSERT_EQ(model.params[i], expected[i]) << i;
      }
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

// Report 22: weight decay acts in both phases. With no gradient but in the first element it is all
// that moves the others.
TEST(WeightDecay, Report22ActsInBothPhases) {
  for (const Kind& kind : test::OneBitKinds()) {
    test::World(2).run([&](int, bitrail_comm_t comm) {
      SmallModel model;
      model.group.weight_decay = 0.1;
      model.options.freeze_step = 4;
      bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
      std::vector<float> gradient(SmallModel::kElements, 0.0f);
      gradient[0] = gradient[SmallModel::kFirst] = 1;
      for (int step = 1; step <= 12; step++) {
        const float before = model.params[SmallModel::kElements - 1];
        ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
        EXPECT_LT(model.params[SmallModel::kElements - 1], before) << kind.name << " " << step;
        EXPECT_GT(model.params[SmallModel::kElements - 1], 0.5f);
      }
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

// Report 4: an optimizer of empty tensors sends nothing and steps.
TEST(Empty, Report4SendsNothing) {
  for (const Kind& kind : test::OneBitKinds()) {
    test::World(2).run([&](int, bitrail_comm_t comm) {
      SmallModel model;
      model.segments[0].count = model.segments[1].count = 0;
      model.options.params = nullptr;
      bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
      const uint64_t before = test::Counters(comm).wire_bytes_sent;
      for (int step = 1; step <= 3; step++)
        ASSERT_EQ(bitrail_optimizer_step(optimizer, nullptr), BITRAIL_OK) << bitrail_last_error();
      if (std::string(kind.name) != "zero_one_adam") {  // its ranks tell each other of NaN
        EXPECT_EQ(test::Counters(comm).wire_bytes_sent, before) << kind.name;
      }
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

// Report 16: state bytes an element, to the padding: 8 + 4 + 4/W, and 4 more for 0/1 Adam (once
// frozen) and 1-bit LAMB. Parameters are not counted.
TEST(Memory, Report16IsWhatItSays) {
  for (const Kind& kind : test::OneBitKinds()) {
    test::World(4).run([&](int, bitrail_comm_t comm) {
      SmallModel model;
      bitrail_optimizer_t optimizer = test::Make(kind, comm, model.options);
      for (int step = 1; step <= 4; step++) test::Step(optimizer, comm, step);
      const std::string name = kind.name;
      const double bytes = name == "onebit_adam" ? 12 + 4.0 / 4 : 16 + 4.0 / 4;
      const auto got = static_cast<double>(bitrail_optimizer_state_bytes(optimizer));
      const double n = SmallModel::kElements;
      EXPECT_GE(got, bytes * n) << name;
      EXPECT_LE(got, bytes * n + 64 * 12) << name;
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

}  // namespace
}  // namespace bitrail
