// DeepSpeed's JSON configuration, and the batch sizes and learning rates that follow from it.
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/seeds.h"
#include "tools/train/deepspeed_config.h"

namespace {

using namespace bitrail::train;

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  return {bytes_of(R"({"train_batch_size": 4096, "train_micro_batch_size_per_gpu": 16,
 "gradient_clipping": 1.0, "optimizer": {"type": "OneBitAdam", "params": {"lr": 4e-4,
 "betas": [0.9, 0.999], "freeze_step": 23000, "comm_backend_name": "nccl"}},
 "scheduler": {"type": "WarmupDecayLR", "params": {"warmup_num_steps": 10, "total_num_steps": 99}},
 "fp16": {"enabled": true, "loss_scale": 0}})"),
          bytes_of(R"({"train_batch_size": 6, "gradient_accumulation_steps": 3, "optimizer":
 {"type": "zerooneadam", "params": {"var_freeze_step": 9, "local_step_scaler": 3}},
 "zero_optimization": {"stage": 0}, "bf16": {"enabled": false}})"),
          bytes_of(R"({"train_micro_batch_size_per_gpu": 2, "optimizer": {"type": "OneBitLamb",
 "params": {"max_coeff": 0.3, "factor_max": 4}}, "scheduler": {"type": "WarmupLR"}})")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  TrainOptions options;
  options.schedule_scale = 0.01;
  const bitrail::Status status = ParseDeepSpeedConfig(text, "file", &options);
  if (!status.ok()) {
    require(status.text().find("file") != std::string::npos);
    return 0;
  }
  if (!CheckOptions(options).ok()) return 0;
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1);
  require(options.freeze.kind == Freeze::Kind::steps || options.optimizer == OptimizerKind::adam ||
          options.optimizer == OptimizerKind::lamb);
  for (const int64_t step : {1, 2, 10, 1000000}) {
    const double lr = LearningRate(options, step);
    require(std::isfinite(lr) && lr >= 0);
  }
  if (!ResolveBatch(4, &options).ok()) return 0;
  require(options.batch.train == 4 * options.batch.micro * options.batch.accumulation);
  require(options.shape.batch >= 1);
  return 0;
}
