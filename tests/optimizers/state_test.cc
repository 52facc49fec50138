#include "optimizers/state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>

#include "tests/optimizers/model.h"

namespace bitrail {
namespace {

using optimizers::Options;
using optimizers::State;
using test::SmallModel;

Status MakeState(const bitrail_optimizer_options_t* from, State* state) {
  Options options;
  BITRAIL_TRY(ReadOptions(from, &options));
  return optimizers::MakeState(options, state);
}

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
      {"compat", [](SmallModel& m) { m.options.compat = 1u << 20; }},
      {"layout", [](SmallModel& m) { m.options.layout = static_cast<bitrail_layout_t>(9); }},
      {"freeze mode", [](SmallModel& m) { m.options.freeze = static_cast<bitrail_freeze_t>(9); }},
      {"freeze_step", [](SmallModel& m) { m.options.freeze_step = -1; }},
      {"total_steps", [](SmallModel& m) { m.options.freeze = BITRAIL_FREEZE_SHARE; }},
      {"freeze_share",
       [](SmallModel& m) {
         m.options.freeze = BITRAIL_FREEZE_SHARE;
         m.options.freeze_share = 1.5;
         m.options.total_steps = 10;
       }},
      {"freeze_threshold",
       [](SmallModel& m) {
         m.options.freeze = BITRAIL_FREEZE_AUTO;
         m.options.freeze_threshold = 1;
       }},
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

// A program built with the first header passes shorter structures: what they lack is zero.
TEST(State, ShorterStructuresMeanTheDefault) {
  SmallModel model;
  model.options.compat = BITRAIL_COMPAT_UPDATE_DEAD;
  model.options.freeze = static_cast<bitrail_freeze_t>(7);
  Options options;
  EXPECT_EQ(ReadOptions(&model.options, &options).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  model.options.struct_size = offsetof(bitrail_optimizer_options_t, layout);
  ASSERT_TRUE(ReadOptions(&model.options, &options).ok());
  EXPECT_TRUE(options.compat(BITRAIL_COMPAT_UPDATE_DEAD));
  EXPECT_EQ(options.c.freeze, BITRAIL_FREEZE_STEP);
  model.options.struct_size = offsetof(bitrail_optimizer_options_t, compat);
  Options oldest;
  ASSERT_TRUE(ReadOptions(&model.options, &oldest).ok());
  EXPECT_FALSE(oldest.compat(BITRAIL_COMPAT_UPDATE_DEAD));
  model.group.struct_size = offsetof(bitrail_param_group_t, non_freeze);
  model.group.non_freeze = 1;
  State state;
  ASSERT_TRUE(optimizers::MakeState(oldest, &state).ok());
  EXPECT_FALSE(state.groups[0].non_freeze);
}

}  // namespace
}  // namespace bitrail
