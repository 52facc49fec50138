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
      {"--batch", [](TrainOptions* o) { o->shape.batch = 0; }},
      {"--steps", [](TrainOptions* o) { o->steps = 0; }},
      {"--lr", [](TrainOptions* o) { o->lr = 0; }},
      {"--lr", [](TrainOptions* o) { o->lr = std::nan(""); }},
      {"--lr-warmup", [](TrainOptions* o) { o->lr_warmup = -1; }},
      {"--beta1", [](TrainOptions* o) { o->beta1 = 1; }},
      {"--beta2", [](TrainOptions* o) { o->beta2 = -0.1; }},
      {"--eps", [](TrainOptions* o) { o->eps = 0; }},
      {"--weight-decay", [](TrainOptions* o) { o->weight_decay = -1; }},
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
  options.freeze_step = 0;
  EXPECT_EQ(FreezeStep(options), 0);
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
}

}  // namespace
}  // namespace bitrail::train
