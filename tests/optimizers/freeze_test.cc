// When compression begins: as a share of the steps, and when the variance has settled.
#include "optimizers/freeze.h"

#include <gtest/gtest.h>

#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using test::Kind;
using test::SmallModel;

class Freeze : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, Freeze, ::testing::ValuesIn(test::OneBitKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

// Training steps before the freeze.
int64_t StepsBefore(const Kind& kind, const bitrail_optimizer_options_t& options, int steps,
                    bitrail_comm_t comm) {
  bitrail_optimizer_t optimizer = test::Make(kind, comm, options);
  EXPECT_EQ(bitrail_optimizer_frozen_at(optimizer), -1);
  for (int step = 1; step <= steps; step++) test::Step(optimizer, comm, step);
  const int64_t at = bitrail_optimizer_frozen_at(optimizer);
  EXPECT_EQ(bitrail_optimizer_frozen(optimizer), at >= 0);
  EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
  return at < 0 ? -1 : at - (options.init_call != 0 ? 1 : 0);
}

TEST_P(Freeze, AtAShareOfTheSteps) {
  test::World(2).run([&](int, bitrail_comm_t comm) {
    for (const int init_call : {0, 1}) {
      SmallModel model;
      model.options.freeze = BITRAIL_FREEZE_SHARE;
      model.options.init_call = init_call;
      model.options.total_steps = 40;
      model.options.freeze_share = 0.15;
      EXPECT_EQ(StepsBefore(GetParam(), model.options, 10, comm), 6);
      model.options.freeze_share = 0;
      EXPECT_EQ(StepsBefore(GetParam(), model.options, 3, comm), 1);
    }
  });
}

// Gradients of constant size: the variance fills as 1 - beta2^t, so with distance D = 1/(1-beta2) =
// 100 the ratio (1 - beta2^(t-D)) / (1 - beta2^t) reaches 0.96 at t = 3.8 D or so; with a threshold
// of 0.9 the least of 3 D steps decides.
class Settling : public ::testing::TestWithParam<Kind> {};  // 0/1 Adam fills at its own intervals
INSTANTIATE_TEST_SUITE_P(, Settling, ::testing::Values(test::kOneBitAdam, test::kOneBitLamb),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(Settling, FreezesWhenTheVarianceHasSettled) {
  test::World(2).run([&](int, bitrail_comm_t comm) {
    SmallModel model;
    model.group.lr = 1e-4;
    model.options.freeze = BITRAIL_FREEZE_AUTO;
    const int64_t settled = StepsBefore(GetParam(), model.options, 450, comm);
    EXPECT_GE(settled, 330);
    EXPECT_LE(settled, 420);
    model.options.freeze_threshold = 0.9;
    const int64_t early = StepsBefore(GetParam(), model.options, 330, comm);
    EXPECT_GE(early, 300);
    EXPECT_LE(early, 306);
    model.options.freeze_threshold = 0.99999;
    EXPECT_EQ(StepsBefore(GetParam(), model.options, 330, comm), -1);
  });
}

}  // namespace
}  // namespace bitrail
