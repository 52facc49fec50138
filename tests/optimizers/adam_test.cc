#include "optimizers/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "optimizers/optimizer.h"
#include "tests/optimizers/model.h"

namespace bitrail {
namespace {

using test::SmallModel;

TEST(Adam, FollowsItsEquations) {
  SmallModel model;
  model.group.weight_decay = 0.1;
  bitrail_optimizer_t optimizer = nullptr;
  ASSERT_EQ(bitrail_adam_create(&optimizer, nullptr, &model.options), BITRAIL_OK);
  double m = 0, v = 0, x = 1;  // element 700, in double
  for (int step = 1; step <= 50; step++) {
    if (step == 20) {
      EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 0, 0.02), BITRAIL_OK);
    }
    const std::vector<float> gradient = SmallModel::Gradient(step, 0);
    ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
    const double g = gradient[700];
    m = 0.9 * m + 0.1 * g;
    v = 0.99 * v + 0.01 * g * g;
    x -= (step < 20 ? 0.01 : 0.02) * (m / (std::sqrt(v) + 1e-8) + 0.1 * x);
    ASSERT_NEAR(model.params[700], x, 1e-5) << "step " << step;
    EXPECT_EQ(bitrail_optimizer_gradient(optimizer), BITRAIL_GRADIENT_MEAN);
  }
  EXPECT_EQ(bitrail_optimizer_step_count(optimizer), 50);
  EXPECT_EQ(bitrail_optimizer_frozen(optimizer), 0);
  EXPECT_EQ(bitrail_optimizer_state_bytes(optimizer), 8 * SmallModel::kElements);
  EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
}

TEST(Adam, RefusesAGradientThatIsNotFiniteAndChangesNothing) {
  SmallModel model;
  bitrail_optimizer_t optimizer = nullptr;
  ASSERT_EQ(bitrail_adam_create(&optimizer, nullptr, &model.options), BITRAIL_OK);
  ASSERT_EQ(bitrail_optimizer_step(optimizer, SmallModel::Gradient(1, 0).data()), BITRAIL_OK);
  const std::vector<float> params = model.params, m = optimizer->state.m, v = optimizer->state.v;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e30f}) {
    std::vector<float> gradient = SmallModel::Gradient(2, 0);
    gradient[SmallModel::kFirst + 5] = bad;
    EXPECT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_ERR_NOT_FINITE);
    const std::string text = bitrail_last_error();
    if (!std::isfinite(bad)) {
      EXPECT_NE(text.find("element 5 of segment 1"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(model.params, params);
  EXPECT_EQ(optimizer->state.m, m);
  EXPECT_EQ(optimizer->state.v, v);
  EXPECT_EQ(bitrail_optimizer_step_count(optimizer), 1);
  EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
}

TEST(Adam, NullAndUnknownArgumentsAreRefused) {
  SmallModel model;
  bitrail_optimizer_t optimizer = nullptr;
  EXPECT_EQ(bitrail_adam_create(nullptr, nullptr, &model.options), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_adam_create(&optimizer, nullptr, nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_onebit_adam_create(&optimizer, nullptr, &model.options),
            BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_step(nullptr, model.params.data()), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_destroy(nullptr), BITRAIL_OK);
  ASSERT_EQ(bitrail_adam_create(&optimizer, nullptr, &model.options), BITRAIL_OK);
  EXPECT_EQ(bitrail_optimizer_step(optimizer, nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 1, 0.1), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 0, -0.1), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_set_lr(optimizer, 0, std::nan("")), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
}

}  // namespace
}  // namespace bitrail
