#include "tools/train/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace bitrail::train {
namespace {

TEST(Options, DefaultsAreGood) {
  const Status status = CheckOptions({});
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Options, RefusesWhatCannotWorkAndNamesTheOption) {
  struct Case {
    const char* option;
    std::function<void(TrainOptions*)> spoil;
  };
  const Case cases[] = {
      {"--layers", [](TrainOptions* o) { o->shape.layers = -1; }},
      {"--width", [](TrainOptions* o) { o->shape.width = 0; }},
      {"--width", [](TrainOptions* o) { o->shape.width = 130; }},
      {"--width", [](TrainOptions* o) { o->shape.width = 5, o->shape.heads = 5; }},
      {"--heads", [](TrainOptions* o) { o->shape.heads = 0; }},
      {"--seq", [](TrainOptions* o) { o->shape.sequence = 513; }},
      {"--seq", [](TrainOptions* o) { o->shape.sequence = 1; }},
      {"--batch", [](TrainOptions* o) { o->batch.micro = 0; }},
      {"--steps", [](TrainOptions* o) { o->steps = 0; }},
      {"--lr", [](TrainOptions* o) { o->lr = 0; }},
      {"--lr", [](TrainOptions* o) { o->lr = std::nan(""); }},
      {"--lr-warmup", [](TrainOptions* o) { o->lr_warmup = -1; }},
      {"--beta1", [](TrainOptions* o) { o->beta1 = 1; }},
      {"--beta2", [](TrainOptions* o) { o->beta2 = -0.1; }},
      {"--eps", [](TrainOptions* o) { o->eps = 0; }},
      {"--weight-decay", [](TrainOptions* o) { o->weight_decay = -1; }},
      {"--accumulation", [](TrainOptions* o) { o->batch.accumulation = -1; }},
      {"--lamb-lr", [](TrainOptions* o) { o->lamb_lr = 0; }},
      {"--clip", [](TrainOptions* o) { o->clip = -1; }},
      {"--max-coeff", [](TrainOptions* o) { o->max_coeff = 0.001; }},
      {"--factor-max", [](TrainOptions* o) { o->factor_max = 0.1; }},
      {"--loss-scale", [](TrainOptions* o) { o->loss_scale.fixed = -1; }},
      {"--initial-scale-power", [](TrainOptions* o) { o->loss_scale.initial_power = 127; }},
      {"--hysteresis", [](TrainOptions* o) { o->loss_scale.hysteresis = 0; }},
      {"--local-step-clipper", [](TrainOptions* o) { o->local_step_clipper = 0; }},
      {"--every", [](TrainOptions* o) { o->save_every = 5; }},
      {"--save", [](TrainOptions* o) { o->save = "folder", o->seeds = 2; }},
      {"--resume",
       [](TrainOptions* o) { o->resume = "folder", o->compare = {OptimizerKind::adam}; }},
      {"--save",
       [](TrainOptions* o) { o->save = "folder", o->optimizer = OptimizerKind::naive_onebit; }},
      {"--eval", [](TrainOptions* o) { o->eval_batches = -1; }},
  };
  for (const Case& c : cases) {
    TrainOptions options;
    c.spoil(&options);
    const Status status = CheckOptions(options);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT) << c.option;
    EXPECT_NE(status.text().find(c.option), std::string::npos) << status.text();
  }
}

TEST(Options, FreezeStepIsFifteenPercentUnlessGiven) {
  TrainOptions options;
  EXPECT_EQ(FreezeStep(options), 30);
  options.steps = 3;
  EXPECT_EQ(FreezeStep(options), 1);
  options.freeze = {Freeze::Kind::steps, 0, 0};
  EXPECT_EQ(FreezeStep(options), 0);
}

TEST(Options, FreezeIsANumberAShareOrAuto) {
  TrainOptions options;
  ASSERT_TRUE(ParseFreeze("400", &options.freeze).ok());
  EXPECT_EQ(FreezeStep(options), 400);
  ASSERT_TRUE(ParseFreeze("29%", &options.freeze).ok());
  EXPECT_EQ(FreezeStep(options), 58);
  ASSERT_TRUE(ParseFreeze("auto", &options.freeze).ok());
  EXPECT_EQ(options.freeze.kind, Freeze::Kind::automatic);
  for (const char* bad : {"", "%", "-1", "101%", "automatic", "1.5", "nan%"}) {
    const Status status = ParseFreeze(bad, &options.freeze);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT) << bad;
    EXPECT_NE(status.text().find("--freeze-step"), std::string::npos) << status.text();
  }
}

TEST(Options, CompatSwitchesHaveNames) {
  uint32_t compat = 0;
  ASSERT_TRUE(ParseCompat("update-dead", &compat).ok());
  ASSERT_TRUE(ParseCompat("local-clip", &compat).ok());
  EXPECT_EQ(compat, static_cast<uint32_t>(BITRAIL_COMPAT_UPDATE_DEAD | BITRAIL_COMPAT_LOCAL_CLIP));
  ASSERT_TRUE(ParseCompat("deepspeed", &compat).ok());
  EXPECT_EQ(compat, static_cast<uint32_t>(BITRAIL_COMPAT_DEEPSPEED));
  const Status status = ParseCompat("local-clop", &compat);
  EXPECT_NE(status.text().find("accumulator, zero-lr"), std::string::npos) << status.text();
}

TEST(Options, BatchSizesFollowDeepSpeedsRule) {
  struct Case {
    BatchSizes given, wanted;
  };
  for (const Case& c : {
           Case{{4096, 16, 64}, {4096, 16, 64}},
           Case{{4096, 16, 0}, {4096, 16, 64}},
           Case{{4096, 0, 64}, {4096, 16, 64}},
           Case{{0, 16, 64}, {4096, 16, 64}},
           Case{{4096, 0, 0}, {4096, 1024, 1}},
           Case{{0, 16, 0}, {64, 16, 1}},
       }) {
    TrainOptions options;
    options.batch = c.given;
    const Status status = ResolveBatch(4, &options);
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(options.batch.train, c.wanted.train);
    EXPECT_EQ(options.batch.micro, c.wanted.micro);
    EXPECT_EQ(options.batch.accumulation, c.wanted.accumulation);
    EXPECT_EQ(options.shape.batch, c.wanted.micro);
  }
  for (const BatchSizes& bad :
       {BatchSizes{4096, 16, 63}, BatchSizes{30, 0, 0}, BatchSizes{3, 0, 0}, BatchSizes{0, 0, 4},
        BatchSizes{0, 0, 0}, BatchSizes{8, 16, 0}, BatchSizes{0, 1 << 14, 1 << 30}}) {
    TrainOptions options;
    options.batch = bad;
    const Status status = ResolveBatch(4, &options);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT);
    for (const char* part : {"train_batch_size", "4 ranks", "--batch"})
      EXPECT_NE(status.text().find(part), std::string::npos) << status.text();
  }
}

TEST(Options, OptimizersHaveNames) {
  for (const char* name :
       {"adam", "onebit-adam", "zero-one-adam", "lamb", "onebit-lamb", "naive-onebit"}) {
    OptimizerKind kind = OptimizerKind::adam;
    EXPECT_TRUE(FindOptimizer(name, &kind));
    EXPECT_STREQ(Name(kind), name);
  }
  OptimizerKind kind = OptimizerKind::adam;
  EXPECT_FALSE(FindOptimizer("sgd", &kind));
}

TEST(Options, LearningRateRisesAndFalls) {
  TrainOptions options;
  options.lr = 2;
  options.steps = 110;
  options.lr_warmup = 10;
  EXPECT_DOUBLE_EQ(LearningRate(options, 1), 0.2);
  EXPECT_DOUBLE_EQ(LearningRate(options, 10), 2);
  EXPECT_NEAR(LearningRate(options, 60), 2 * 51.0 / 101, 1e-12);
  EXPECT_NEAR(LearningRate(options, 110), 2 / 101.0, 1e-12);
  options.lr_decay = false;
  EXPECT_DOUBLE_EQ(LearningRate(options, 110), 2);
  options.lr_warmup = 0;
  EXPECT_DOUBLE_EQ(LearningRate(options, 1), 2);
  options.lamb_lr = 7;
  options.optimizer = OptimizerKind::onebit_lamb;
  EXPECT_DOUBLE_EQ(LearningRate(options, 1), 7);
}

}  // namespace
}  // namespace bitrail::train
