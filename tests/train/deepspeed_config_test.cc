#include "tools/train/deepspeed_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace bitrail::train {
namespace {

constexpr const char* kExamples = BITRAIL_EXAMPLES;

// A file with one optimizer and whatever else.
std::string With(const std::string& type, const std::string& params, const std::string& rest = "") {
  return fmt::format(
      R"({{"train_batch_size": 8, "optimizer": {{"type": "{}", "params": {{{}}}}}{}{}}})", type,
      params, rest.empty() ? "" : ", ", rest);
}

TrainOptions Parsed(const std::string& text, double schedule_scale = 1) {
  TrainOptions options;
  options.schedule_scale = schedule_scale;
  const Status status = ParseDeepSpeedConfig(text, "ds.json", &options);
  EXPECT_TRUE(status.ok()) << status.text();
  return options;
}

bool Notes(const TrainOptions& options, const std::string& part) {
  return std::any_of(options.notes.begin(), options.notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

TEST(DeepSpeedConfig, EveryExampleIsReadAndTrains) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kExamples)) {
    TrainOptions options;
    options.schedule_scale = 0.002;
    Status status = ReadDeepSpeedConfig(entry.path(), &options);
    ASSERT_TRUE(status.ok()) << status.text();
    status = CheckOptions(options);
    EXPECT_TRUE(status.ok()) << entry.path() << ": " << status.text();
    status = ResolveBatch(4, &options);
    EXPECT_TRUE(status.ok()) << entry.path() << ": " << status.text();
    files++;
  }
  EXPECT_EQ(files, 5);
}

TEST(DeepSpeedConfig, BertExampleArrivesWhole) {
  TrainOptions o;
  ASSERT_TRUE(
      ReadDeepSpeedConfig(std::string(kExamples) + "/bert_seq128_onebit_adam.json", &o).ok());
  EXPECT_EQ(o.optimizer, OptimizerKind::onebit_adam);
  EXPECT_EQ(o.freeze.kind, Freeze::Kind::steps);
  EXPECT_EQ(o.freeze.steps, 23000);
  EXPECT_TRUE(o.init_call);
  EXPECT_EQ(o.lr, 4e-4);
  EXPECT_EQ(o.weight_decay, 0.01);
  EXPECT_EQ(o.beta2, 0.999);
  EXPECT_EQ(o.clip, 1);
  EXPECT_EQ(o.precision, Precision::fp16);
  EXPECT_EQ(o.loss_scale.fixed, 0);
  EXPECT_EQ(o.loss_scale.initial_power, 16);
  EXPECT_EQ(o.print_every, 100);
  ASSERT_TRUE(ResolveBatch(64, &o).ok());
  EXPECT_EQ(o.batch.accumulation, 4);
  EXPECT_EQ(o.shape.batch, 16);
}

TEST(DeepSpeedConfig, DefaultsAreDeepSpeeds) {
  TrainOptions o = Parsed(With("onebitadam", ""));
  EXPECT_EQ(o.freeze.steps, 100000);
  EXPECT_EQ(o.lr, 1e-3);
  EXPECT_EQ(o.beta1, 0.9);
  EXPECT_EQ(o.beta2, 0.999);
  EXPECT_EQ(o.eps, 1e-8);
  EXPECT_EQ(o.comm_backend, "nccl");
  EXPECT_FALSE(o.lr_decay);
  EXPECT_EQ(o.lr_warmup, 0);
  o = Parsed(With("ZEROONEADAM", ""));
  EXPECT_EQ(o.optimizer, OptimizerKind::zero_one_adam);
  EXPECT_EQ(o.freeze.steps, 100000);
  EXPECT_EQ(o.var_update_scaler, 16);
  EXPECT_EQ(o.local_step_scaler, 32678);
  EXPECT_EQ(o.local_step_clipper, 16);
  o = Parsed(With("OneBitLamb", ""));
  EXPECT_EQ(o.max_coeff, 10);
  EXPECT_EQ(o.min_coeff, 0.01);
  EXPECT_EQ(o.coeff_beta, 0.9);
  EXPECT_EQ(o.factor_max, 4);
  EXPECT_EQ(o.factor_min, 0.5);
  EXPECT_EQ(o.factor_threshold, 0.1);
  EXPECT_EQ(Parsed(With("AdamW", "")).optimizer, OptimizerKind::adam);
  EXPECT_EQ(Parsed(With("Lamb", "\"lr\": 0.5")).lamb_lr, 0.5);
}

TEST(DeepSpeedConfig, EveryParameterArrives) {
  TrainOptions o = Parsed(With("ZeroOneAdam", R"("lr": 1e-2, "betas": [0.5, 0.25], "eps": 1e-6,
      "weight_decay": 0.125, "var_freeze_step": 10, "var_update_scaler": 2, "local_step_scaler": 30,
      "local_step_clipper": 4, "cuda_aware": true, "comm_backend_name": "mpi")",
                               R"("fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 3,
      "initial_scale_power": 8, "loss_scale_window": 50, "min_loss_scale": 4},
      "gradient_clipping": 0.5, "prescale_gradients": true)"));
  EXPECT_EQ(o.lr, 1e-2);
  EXPECT_EQ(o.beta1, 0.5);
  EXPECT_EQ(o.beta2, 0.25);
  EXPECT_EQ(o.eps, 1e-6);
  EXPECT_EQ(o.weight_decay, 0.125);
  EXPECT_EQ(o.freeze.steps, 10);
  EXPECT_EQ(o.var_update_scaler, 2);
  EXPECT_EQ(o.local_step_scaler, 30);
  EXPECT_EQ(o.local_step_clipper, 4);
  EXPECT_EQ(o.comm_backend, "mpi");
  EXPECT_EQ(o.loss_scale.fixed, 128);
  EXPECT_EQ(o.loss_scale.initial_power, 8);
  EXPECT_EQ(o.loss_scale.window, 50);
  EXPECT_EQ(o.loss_scale.hysteresis, 3);
  EXPECT_EQ(o.loss_scale.minimum, 4);
  EXPECT_EQ(o.clip, 0.5);
  EXPECT_TRUE(Notes(o, "cuda_aware"));
  EXPECT_TRUE(Notes(o, "prescale_gradients"));
  o = Parsed(With("OneBitLamb", R"("max_coeff": 0.3, "min_coeff": 0.02, "coeff_beta": 0.8,
      "factor_max": 3, "factor_min": 0.25, "factor_threshold": 0.2, "freeze_step": 7)",
                  R"("bf16": {"enabled": true})"));
  EXPECT_EQ(o.max_coeff, 0.3);
  EXPECT_EQ(o.min_coeff, 0.02);
  EXPECT_EQ(o.coeff_beta, 0.8);
  EXPECT_EQ(o.factor_max, 3);
  EXPECT_EQ(o.factor_min, 0.25);
  EXPECT_EQ(o.factor_threshold, 0.2);
  EXPECT_EQ(o.freeze.steps, 7);
  EXPECT_EQ(o.precision, Precision::bf16);
}

TEST(DeepSpeedConfig, SchedulersArrive) {
  TrainOptions o = Parsed(With("Adam", "\"lr\": 3", R"("scheduler": {"type": "WarmupLR"})"));
  ASSERT_TRUE(o.warmup.has_value());
  EXPECT_EQ(o.warmup->max_lr, 3);
  EXPECT_EQ(o.warmup->warmup_steps, 1000);
  EXPECT_TRUE(o.warmup->logarithmic);
  o = Parsed(With("Adam", "", R"("scheduler": {"type": "WarmupDecayLR", "params": {
      "warmup_min_lr": 1, "warmup_max_lr": 2, "warmup_num_steps": 1000, "warmup_type": "linear",
      "total_num_steps": 5000, "last_batch_iteration": 3}})"),
             0.01);
  EXPECT_EQ(o.warmup->min_lr, 1);
  EXPECT_EQ(o.warmup->max_lr, 2);
  EXPECT_EQ(o.warmup->warmup_steps, 10);
  EXPECT_EQ(o.warmup->total_steps, 50);
  EXPECT_EQ(o.warmup->last_iteration, 3);
  EXPECT_FALSE(o.warmup->logarithmic);
}

TEST(DeepSpeedConfig, ScheduleScaleShortensWhatIsCountedInSteps) {
  const TrainOptions o = Parsed(With("OneBitAdam", "\"freeze_step\": 23000"), 0.002);
  EXPECT_EQ(o.freeze.steps, 46);
  EXPECT_EQ(Parsed(With("OneBitAdam", "\"freeze_step\": 10"), 0.002).freeze.steps, 1);
  EXPECT_EQ(Parsed(With("OneBitAdam", "\"freeze_step\": 0"), 0.002).freeze.steps, 0);
}

TEST(DeepSpeedConfig, RefusesWithFileKeyAndWhatToDo) {
  const std::string good = With("OneBitAdam", "");
  struct Case {
    std::string text;
    const char *key, *hint;
  };
  const Case cases[] = {
      {"", "ds.json", "JSON"},
      {"[]", "ds.json", "object"},
      {good.substr(0, good.size() - 1), "ds.json", "line 1"},
      {R"({"train_batch_size": 1, "train_batch_size": 2})", "train_batch_size", "twice"},
      {R"({"train_batch_size": 8})", "optimizer", "missing"},
      {R"({"optimizer": {"params": {}}})", "optimizer.type", "missing"},
      {R"({"optimiser": {"type": "Adam"}})", "optimiser", "optimizer"},
      {R"({"optimizer": 5})", "optimizer", "object"},
      {R"({"optimizer": {"type": "Adam", "parms": {}}})", "optimizer.parms", "params"},
      {With("SGD", ""), "optimizer.type", "OneBitAdam, ZeroOneAdam, OneBitLamb"},
      {With("OneBitAdam", "\"cuda-aware\": false"), "cuda-aware", "cuda_aware"},
      {With("OneBitAdam", "\"var_freeze_step\": 5"), "var_freeze_step", "freeze_step"},
      {With("OneBitAdam", "\"freeze_step\": \"auto\""), "freeze_step", "integer"},
      {With("OneBitAdam", "\"freeze_step\": 1.5"), "freeze_step", "integer"},
      {With("OneBitAdam", "\"freeze_step\": -1"), "freeze_step", "integer from 0"},
      {With("OneBitAdam", "\"lr\": true"), "lr", "number"},
      {With("OneBitAdam", "\"betas\": [0.9]"), "betas", "two numbers"},
      {With("OneBitAdam", "\"betas\": [0.9, 1]"), "betas", "below 1"},
      {With("OneBitAdam", "\"eps\": 0"), "eps", "number from"},
      {With("OneBitAdam", "\"amsgrad\": true"), "amsgrad", "not supported"},
      {With("OneBitAdam", "\"max_grad_norm\": 0"), "max_grad_norm", "gradient_clipping"},
      {With("OneBitAdam", "\"comm_backend_name\": \"hccl\""), "comm_backend_name", "nccl, mpi"},
      {With("OneBitLamb", "\"comm_backend_name\": \"compressed\""), "comm_backend_name",
       "nccl, mpi"},
      {With("Adam", "\"adam_w_mode\": false"), "adam_w_mode", "decoupled"},
      {With("Adam", "", R"("zero_optimization": {"stage": 1})"), "zero_optimization", "stage 0"},
      {With("Adam", "", R"("zero_optimization": true)"), "zero_optimization", "stage 0"},
      {With("Adam", "", R"("train_batch_size_": 1)"), "train_batch_size_", "train_batch_size?"},
      {With("Adam", "", R"("fp16": {"enabled": 1})"), "fp16.enabled", "true or false"},
      {With("Adam", "", R"("fp16": {"enabled": true, "hysterese": 1})"), "fp16.hysterese",
       "hysteresis"},
      {With("Adam", "", R"("fp16": {"enabled": true}, "bf16": {"enabled": true})"), "bf16",
       "fp16 is enabled"},
      {With("Adam", "", R"("amp": {"enabled": true})"), "amp", "fp16 or bf16"},
      {With("Adam", "", R"("sparse_gradients": true)"), "sparse_gradients", "dense"},
      {With("Adam", "", R"("gradient_clipping": -1)"), "gradient_clipping", "number from 0"},
      {With("Adam", "", R"("scheduler": {"type": "OneCycle"})"), "scheduler.type",
       "WarmupLR, WarmupDecayLR"},
      {With("Adam", "", R"("scheduler": {"type": "WarmupDecayLR"})"),
       "scheduler.params.total_num_steps", "missing"},
      {With("Adam", "", R"("scheduler": {"type": "WarmupLR", "params": {"warmup_num_step": 5}})"),
       "warmup_num_step:", "warmup_num_steps"},
      {With("Adam", "", R"("scheduler": {"type": "WarmupLR", "params": {"warmup_type": "cos"}})"),
       "warmup_type", "log, linear"},
  };
  for (const Case& c : cases) {
    TrainOptions options;
    const Status status = ParseDeepSpeedConfig(c.text, "ds.json", &options);
    EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG) << c.text;
    for (const char* part : {"ds.json", c.key, c.hint})
      EXPECT_NE(status.text().find(part), std::string::npos) << part << ": " << status.text();
  }
}

TEST(DeepSpeedConfig, SaysOnceWhatNobodyFollows) {
  const TrainOptions o = Parsed(With("OneBitAdam", "\"bias_correction\": true",
                                     R"("wall_clock_breakdown": true, "tensorboard": {},
                                        "zero_optimization": {"stage": 0, "overlap_comm": true})"));
  for (const char* part : {"bias_correction", "wall_clock_breakdown", "tensorboard", "stage 0"})
    EXPECT_TRUE(Notes(o, part)) << part;
  EXPECT_FALSE(Notes(Parsed(With("OneBitAdam", "\"bias_correction\": false")), "bias_correction"));
}

TEST(DeepSpeedConfig, MissingAndHugeFilesAreRefused) {
  TrainOptions options;
  const Status status = ReadDeepSpeedConfig("/no/such/ds.json", &options);
  EXPECT_EQ(status.code(), BITRAIL_ERR_SYSTEM);
  EXPECT_NE(status.text().find("/no/such/ds.json"), std::string::npos);
  EXPECT_FALSE(ReadDeepSpeedConfig("/dev/zero", &options).ok());
}

}  // namespace
}  // namespace bitrail::train
