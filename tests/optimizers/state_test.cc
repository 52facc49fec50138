#include "optimizers/state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/optimizers/model.h"

namespace bitrail {
namespace {

using optimizers::MakeState;
using optimizers::State;
using test::SmallModel;

TEST(State, LaysSegmentsOutOneAfterTheOther) {
  SmallModel model;
  std::vector<float> mask(SmallModel::kSecond, 1.0f);
  mask[3] = 0;
  model.segments[1].mask = mask.data();
  State state;
  ASSERT_TRUE(MakeState(&model.options, &state).ok());
  EXPECT_EQ(state.elements(), SmallModel::kElements);
  EXPECT_EQ(state.segments[1].offset, SmallModel::kFirst);
  EXPECT_TRUE(state.segments[0].mask.empty());
  mask.assign(mask.size(), 0.5f);  // it was copied
  EXPECT_EQ(state.segments[1].mask[3], 0.0f);
  EXPECT_EQ(state.segments[1].mask[4], 1.0f);
  EXPECT_EQ(state.bytes(), 8 * SmallModel::kElements + 4 * SmallModel::kSecond);
}

TEST(State, SegmentsMayBeEmpty) {
  SmallModel model;
  model.segments[0].count = 0;
  State state;
  ASSERT_TRUE(MakeState(&model.options, &state).ok());
  EXPECT_EQ(state.elements(), SmallModel::kSecond);
}

TEST(State, WrongOptionsAreNamed) {
  struct Wrong {
    const char* word;
    std::function<void(SmallModel&)> spoil;
  };
  float mask[SmallModel::kFirst] = {0.5f};
  const Wrong wrongs[] = {
      {"struct_size", [](SmallModel& m) { m.options.struct_size = 8; }},
      {"segment", [](SmallModel& m) { m.options.segments = 0; }},
      {"segment", [](SmallModel& m) { m.options.segment = nullptr; }},
      {"group", [](SmallModel& m) { m.options.groups = 0; }},
      {"params", [](SmallModel& m) { m.options.params = nullptr; }},
      {"struct_size", [](SmallModel& m) { m.group.struct_size = 0; }},
      {"group", [](SmallModel& m) { m.segments[1].group = 1; }},
      {"too many", [](SmallModel& m) { m.segments[1].count = SIZE_MAX; }},
      {"lr", [](SmallModel& m) { m.group.lr = -1; }},
      {"lr", [](SmallModel& m) { m.group.lr = std::nan(""); }},
      {"betas", [](SmallModel& m) { m.group.beta1 = 1; }},
      {"betas", [](SmallModel& m) { m.group.beta2 = -0.1; }},
      {"eps", [](SmallModel& m) { m.group.eps = -1e-8; }},
      {"weight_decay", [](SmallModel& m) { m.group.weight_decay = HUGE_VAL; }},
      {"mask", [&](SmallModel& m) { m.segments[0].mask = mask; }},
  };
  for (const Wrong& wrong : wrongs) {
    SmallModel model;
    wrong.spoil(model);
    State state;
    const Status status = MakeState(&model.options, &state);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT) << wrong.word;
    EXPECT_NE(status.text().find(wrong.word), std::string::npos) << status.text();
  }
}

// A program built with the header before `update_dead` existed passes a shorter structure.
TEST(State, ShorterOptionsMeanTheDefault) {
  SmallModel model;
  model.options.update_dead = 1;
  EXPECT_TRUE(optimizers::UpdateDead(model.options));
  model.options.struct_size = offsetof(bitrail_optimizer_options_t, update_dead);
  EXPECT_FALSE(optimizers::UpdateDead(model.options));
  State state;
  EXPECT_TRUE(MakeState(&model.options, &state).ok());
}

}  // namespace
}  // namespace bitrail
