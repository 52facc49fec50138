// Expected values: DeepSpeed's rules written out.
#include "tools/train/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace bitrail::train {
namespace {

TEST(LrSchedule, WarmupRisesByTheLogarithmAndStays) {
  const WarmupSchedule s = {.min_lr = 1, .max_lr = 3, .warmup_steps = 10};
  EXPECT_DOUBLE_EQ(LearningRate(s, 1), 1);
  EXPECT_DOUBLE_EQ(LearningRate(s, 2), 1);
  EXPECT_DOUBLE_EQ(LearningRate(s, 3), 1 + 2 * std::log(2) / std::log(10));
  EXPECT_DOUBLE_EQ(LearningRate(s, 11), 3);
  EXPECT_DOUBLE_EQ(LearningRate(s, 12), 3);
  EXPECT_DOUBLE_EQ(LearningRate(s, 100000), 3);
}

TEST(LrSchedule, WarmupDecayFallsToTheMinimum) {
  const WarmupSchedule s = {
      .min_lr = 0, .max_lr = 4, .warmup_steps = 10, .logarithmic = false, .total_steps = 50};
  EXPECT_DOUBLE_EQ(LearningRate(s, 7), 4 * 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(s, 12), 4);
  EXPECT_DOUBLE_EQ(LearningRate(s, 32), 2);
  EXPECT_DOUBLE_EQ(LearningRate(s, 52), 0);
  EXPECT_DOUBLE_EQ(LearningRate(s, 60), 0);
}

TEST(LrSchedule, StartsWhereItIsTold) {
  WarmupSchedule s = {
      .min_lr = 0, .max_lr = 1, .warmup_steps = 10, .logarithmic = false, .last_iteration = 4};
  EXPECT_DOUBLE_EQ(LearningRate(s, 1), 0.4);
  s.warmup_steps = 1;  // counts as 2
  s.last_iteration = -1;
  EXPECT_DOUBLE_EQ(LearningRate(s, 3), 0.5);
  EXPECT_DOUBLE_EQ(LearningRate(s, 4), 1);
}

}  // namespace
}  // namespace bitrail::train
