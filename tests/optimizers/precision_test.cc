// Mixed precision: loss scaling by DeepSpeed's rules, overflow and clipping agreed on all ranks,
// 16-bit parameters with float32 masters.
#include "optimizers/precision.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/host/convert.h"
#include "tests/optimizers/kinds.h"

namespace bitrail {
namespace {

using optimizers::LossScale;
using test::Kind;
using test::SmallModel;

bitrail_precision_t Dynamic(int power, int64_t window, int hysteresis) {
  bitrail_precision_t p;
  bitrail_precision_defaults(&p);
  p.loss_scale = BITRAIL_LOSS_SCALE_DYNAMIC;
  p.initial_scale_power = power;
  p.scale_window = window;
  p.hysteresis = hysteresis;
  return p;
}

// What DeepSpeed's DynamicLossScaler does, worked out by hand.
TEST(LossScale, FollowsDeepSpeedsRules) {
  LossScale s = optimizers::MakeLossScale(Dynamic(4, 3, 2));
  const auto after = [&s](bool overflow) {
    EXPECT_TRUE(s.Update(overflow).ok());
    return s.scale;
  };
  EXPECT_EQ(after(true), 16);   // iteration 0: hysteresis takes it
  EXPECT_EQ(after(true), 8);    // 1
  EXPECT_EQ(after(false), 8);   // 2
  EXPECT_EQ(after(false), 8);   // 3
  EXPECT_EQ(after(false), 16);  // 4: three steps since the overflow, hysteresis refilled
  EXPECT_EQ(after(true), 16);   // 5
  EXPECT_EQ(after(true), 8);    // 6
  EXPECT_EQ(after(true), 4);    // 7: not refilled in between
  EXPECT_EQ(s.skipped, 5);
  LossScale fresh = optimizers::MakeLossScale(Dynamic(4, 3, 1));
  for (int i = 0; i < 3; i++) ASSERT_TRUE(fresh.Update(false).ok());
  EXPECT_EQ(fresh.scale, 32);  // the first window counts from before step 0
}

// Report 6 (DeepSpeed issue 753): overflow for ever halves the scale to the floor, not below, and
// then is an error.
TEST(LossScale, Report6StopsAtTheFloor) {
  bitrail_precision_t p = Dynamic(3, 1000, 1);
  p.most_skips = 5;
  LossScale s = optimizers::MakeLossScale(p);
  for (int i = 0; i < 7; i++) ASSERT_TRUE(s.Update(true).ok()) << i;  // 4, 2, 1, and 4 more
  EXPECT_EQ(s.scale, 1);
  const Status status = s.Update(true);
  EXPECT_EQ(status.code(), BITRAIL_ERR_NOT_FINITE);
  EXPECT_NE(status.text().find("freeze_step"), std::string::npos) << status.text();
  EXPECT_EQ(s.scale, 1);
}

class Precision : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(, Precision, ::testing::ValuesIn(test::AllKinds()),
                         [](const auto& one) { return std::string(one.param.name); });

// The gradient, scaled, is the same step up to nothing (the scale is a power of two); one rank's
// overflow is skipped by all and not counted, in every phase.
TEST_P(Precision, OverflowOnOneRankSkipsTheStepOnAll) {
  std::vector<std::vector<float>> plain(2), scaled(2);
  for (const bool with_scale : {false, true}) {
    test::World(2).run([&](int rank, bitrail_comm_t comm) {
      SmallModel model;
      const bitrail_zero_one_t intervals = test::ShortIntervals();
      const bitrail_precision_t precision = Dynamic(10, 1000, 1);
      model.options.zero_one = &intervals;
      model.options.freeze_step = 5;
      if (with_scale) model.options.precision = &precision;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, model.options);
      for (int step = 1; step <= 20; step++) {
        std::vector<float> gradient = test::Wanted(optimizer, comm, step);
        const auto scale = static_cast<float>(bitrail_optimizer_loss_scale(optimizer));
        for (float& g : gradient) g *= scale;
        if (with_scale && step % 7 == 3) {
          std::vector<float> bad = gradient;
          if (rank == 1) bad[3] = HUGE_VALF;
          const std::vector<float> before = model.params;
          ASSERT_EQ(bitrail_optimizer_step(optimizer, bad.data()), BITRAIL_OK);
          EXPECT_EQ(model.params, before);
          EXPECT_EQ(bitrail_optimizer_step_count(optimizer), step - 1);
          EXPECT_EQ(bitrail_optimizer_loss_scale(optimizer), scale / 2);
          for (float& g : gradient) g *= 0.5f;
        }
        ASSERT_EQ(bitrail_optimizer_step(optimizer, gradient.data()), BITRAIL_OK);
      }
      EXPECT_EQ(bitrail_optimizer_skipped_steps(optimizer), with_scale ? 3 : 0);
      (with_scale ? scaled : plain)[static_cast<size_t>(rank)] = model.params;
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
  EXPECT_EQ(scaled, plain);
}

// Report 17 (DeepSpeed issue 5708): bfloat16 without a loss scale; float16 likewise. The masters
// are what a float32 run computes from the same start, the parameters their rounding.
TEST_P(Precision, Report17SixteenBitParametersNeedNoLossScale) {
  for (const bitrail_type_t type : {BITRAIL_FLOAT16, BITRAIL_BFLOAT16}) {
    const auto narrow = type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
    const auto widen = type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat;
    test::World(2).run([&](int, bitrail_comm_t comm) {
      SmallModel exact, model;
      bitrail_precision_t precision;
      bitrail_precision_defaults(&precision);
      precision.param_type = type;
      std::vector<uint16_t> params(SmallModel::kElements), expected(params);
      narrow(model.params.data(), params.size(), params.data());
      model.options.params = params.data();
      model.options.precision = &precision;
      bitrail_optimizer_t optimizer = test::Make(GetParam(), comm, model.options);
      bitrail_optimizer_t reference = test::Make(GetParam(), comm, exact.options);
      for (int step = 1; step <= 8; step++) {
        std::vector<float> gradient = test::Wanted(optimizer, comm, step);
        std::vector<uint16_t> raw(gradient.size());
        narrow(gradient.data(), raw.size(), raw.data());
        widen(raw.data(), raw.size(), gradient.data());
        ASSERT_EQ(bitrail_optimizer_step_typed(optimizer, raw.data(), type), BITRAIL_OK)
            << bitrail_last_error();
        ASSERT_EQ(bitrail_optimizer_step(reference, gradient.data()), BITRAIL_OK);
      }
      narrow(optimizer->state.masters.data(), expected.size(), expected.data());
      EXPECT_EQ(params, expected);
      for (size_t i = 0; i < SmallModel::kElements; i++)
        ASSERT_NEAR(optimizer->state.masters[i], exact.params[i], 1e-6);
      EXPECT_EQ(bitrail_optimizer_step_typed(optimizer, params.data(), BITRAIL_FLOAT64),
                BITRAIL_ERR_UNSUPPORTED);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
      EXPECT_EQ(bitrail_optimizer_destroy(reference), BITRAIL_OK);
    });
  }
}

// F11: ranks with very different norms clip by the same factor, DeepSpeed's by their own.
TEST(Clip, IsTheSameFactorOnAllRanksUnlessAskedFor) {
  for (const uint32_t compat : {0u, uint32_t{BITRAIL_COMPAT_LOCAL_CLIP}}) {
    test::World(2).run([&](int rank, bitrail_comm_t comm) {
      SmallModel model;
      bitrail_optimizer_options_t options = model.options;
      bitrail_precision_t p;
      bitrail_precision_defaults(&p);
      p.clip = 1;
      options.precision = &p;
      options.compat = compat;
      bitrail_optimizer_t optimizer = test::Make(test::kOneBitAdam, comm, options);
      const std::vector<float> data(SmallModel::kElements, rank == 0 ? 0.01f : 1.0f);
      optimizers::Gradient gradient;
      gradient.data = data.data();
      bool overflow = true;
      ASSERT_TRUE(Prepare(optimizer->precision, optimizer->state, true, &gradient, &overflow).ok());
      EXPECT_FALSE(overflow);
      const double root = std::sqrt(static_cast<double>(SmallModel::kElements));
      const double own = rank == 0 ? 0.01 * root : root, mean = 1.01 / 2 * root;
      const double norm = compat == 0 ? mean : own;
      EXPECT_NEAR(gradient.factor, std::min(1.0, 1 / (norm + 1e-6)), 1e-6);
      EXPECT_EQ(bitrail_optimizer_destroy(optimizer), BITRAIL_OK);
    });
  }
}

TEST(PrecisionOptions, WrongOnesAreNamed) {
  struct Wrong {
    const char* word;
    void (*spoil)(bitrail_precision_t&);
  };
  const Wrong wrongs[] = {
      {"param_type", [](bitrail_precision_t& p) { p.param_type = BITRAIL_INT32; }},
      {"loss scale", [](bitrail_precision_t& p) { p.loss_scale = bitrail_loss_scale_t(3); }},
      {"static_scale", [](bitrail_precision_t& p) { p.static_scale = 0; }},
      {"scale_window", [](bitrail_precision_t& p) { p.scale_window = 0; }},
      {"hysteresis", [](bitrail_precision_t& p) { p.hysteresis = 0; }},
      {"min_scale", [](bitrail_precision_t& p) { p.min_scale = std::nan(""); }},
      {"clip", [](bitrail_precision_t& p) { p.clip = -1; }},
      {"struct_size", [](bitrail_precision_t& p) { p.struct_size = 4; }},
  };
  for (const Wrong& wrong : wrongs) {
    SmallModel model;
    bitrail_precision_t p;
    bitrail_precision_defaults(&p);
    wrong.spoil(p);
    model.options.precision = &p;
    bitrail_optimizer_t optimizer = nullptr;
    EXPECT_NE(bitrail_adam_create(&optimizer, nullptr, &model.options), BITRAIL_OK);
    const std::string text = bitrail_last_error();
    EXPECT_NE(text.find(wrong.word), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace bitrail
