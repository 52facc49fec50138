#include "tools/train/deepspeed_config.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>

#include "tools/train/json_section.h"

namespace bitrail::train {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int64_t kMaxCount = 1 << 30;

constexpr const char* kZeroRefused =
    "ZeRO stages 1 and up are refused: they hand each rank a part of the averaged gradient, but "
    "1-bit optimizers compress the momentum of whole tensors from each rank's own gradient, with "
    "an error buffer for every element. Take stage 0";

// Keys that change neither the numbers of a run nor what is measured here.
constexpr const char* kWithoutEffect[][2] = {
    {"prescale_gradients",
     "the mean over ranks is taken in float32, where dividing first or last "
     "is the same but for rounding"},
    {"gradient_predivide_factor", "see prescale_gradients"},
    {"wall_clock_breakdown", "every step shows computing and exchange apart"},
    {"zero_allow_untested_optimizer", "there is no ZeRO"},
    {"communication_data_type", "--precision decides"},
    {"dump_state", "not a matter of training"},
    {"memory_breakdown", "not a matter of training"},
    {"disable_allgather", "there is no ZeRO"},
    {"fp32_allreduce", "the mean over ranks is taken in float32"},
    {"dataloader_drop_last", "batches are cut at random places"},
    {"activation_checkpointing", "the model keeps its activations"},
    {"checkpoint", "see --save"},
    {"flops_profiler", "not here"},
    {"comms_logger", "see BITRAIL_COUNTERS"},
    {"tensorboard", "see --json"},
    {"wandb", "see --json"},
    {"csv_monitor", "see --json"},
};

Status ParseFp16(const json& object, const JsonSection& file, bool* enabled, LossScale* scale) {
  JsonSection s(object, file.file(), file.Path("fp16"), file.notes());
  s.Boolean("enabled", enabled);
  s.Real("loss_scale", &scale->fixed, 0, std::numeric_limits<float>::max());
  s.Integer("initial_scale_power", &scale->initial_power, 0, 126);
  s.Integer("loss_scale_window", &scale->window, 1, kMaxCount);
  s.Integer("hysteresis", &scale->hysteresis, 1, kMaxCount);
  s.Real("min_loss_scale", &scale->minimum, std::numeric_limits<float>::min(),
         std::numeric_limits<float>::max());
  s.Ignore("auto_cast", "computing is float32");
  s.Ignore("consecutive_hysteresis", "hysteresis counts all overflows, DeepSpeed's default");
  s.Ignore("fp16_master_weights_and_grads", "masters are float32");
  return s.Finish();
}

Status ParseBf16(const json& object, const JsonSection& file, const char* key, bool* enabled) {
  JsonSection s(object, file.file(), file.Path(key), file.notes());
  s.Boolean("enabled", enabled);
  s.Ignore("immediate_grad_update", "gradients are gathered over a step");
  s.Ignore("bf16_master_weights_and_grads", "masters are float32");
  s.Ignore("bf16_optimizer_states", "states are float32");
  return s.Finish();
}

// A stage, or DeepSpeed's old form: true is stage 1.
void CheckZero(const json& value, JsonSection* file) {
  const json* stage = value.is_object() && value.contains("stage") ? &value["stage"] : nullptr;
  const bool off = value == false || (value.is_object() && (stage == nullptr || *stage == 0));
  if (!off) return file->Fail("zero_optimization", kZeroRefused);
  file->Note("zero_optimization is read and not followed: stage 0 asks for nothing");
}

void ParseSections(JsonSection* file, TrainOptions* o) {
  bool fp16 = false;
  bool bf16 = false;
  if (const json* found = file->Object("fp16"))
    file->Take(ParseFp16(*found, *file, &fp16, &o->loss_scale));
  for (const char* key : {"bf16", "bfloat16"})
    if (const json* found = file->Object(key)) file->Take(ParseBf16(*found, *file, key, &bf16));
  if (fp16 && bf16) file->Fail("bf16", "fp16 is enabled too; take one of them");
  o->precision = fp16 ? Precision::fp16 : bf16 ? Precision::bf16 : Precision::fp32;
  // As DeepSpeed's 16-bit wrapper flattens them for the Adams; LAMB's default is one for all.
  o->layout = BITRAIL_LAYOUT_DEFAULT;
  const json* optimizer = file->Find("optimizer");
  if (optimizer == nullptr) file->Fail("optimizer", "is missing");
  if (optimizer != nullptr && file->Object("optimizer") != nullptr)
    file->Take(ParseDeepSpeedOptimizer(*optimizer, *file, o));
  if (o->precision != Precision::fp32 && !IsLamb(o->optimizer))
    o->layout = BITRAIL_LAYOUT_PER_GROUP;
  if (const json* found = file->Object("scheduler"))
    file->Take(ParseDeepSpeedScheduler(*found, *file, o));
  if (const json* found = file->Find("zero_optimization")) CheckZero(*found, file);
}

}  // namespace

int64_t ScaledSteps(const TrainOptions& options, int64_t steps) {
  if (steps == 0) return 0;
  const double scaled = std::round(static_cast<double>(steps) * options.schedule_scale);
  return static_cast<int64_t>(std::clamp(scaled, 1.0, static_cast<double>(kMaxCount)));
}

Status ParseDeepSpeedConfig(std::string_view text, const std::string& path, TrainOptions* o) {
  json object;
  BITRAIL_TRY(ParseJsonObject(text, path, &object));
  JsonSection file(object, path, "", &o->notes);
  o->batch = {};
  file.Integer("train_batch_size", &o->batch.train, 1, kMaxCount);
  file.Integer("train_micro_batch_size_per_gpu", &o->batch.micro, 1, kMaxCount);
  file.Integer("gradient_accumulation_steps", &o->batch.accumulation, 1, kMaxCount);
  o->print_every = 10;
  file.Integer("steps_per_print", &o->print_every, 1, kMaxCount);
  o->clip = 0;
  file.Real("gradient_clipping", &o->clip, 0, std::numeric_limits<float>::max());
  bool unwanted = false;
  if (file.Boolean("sparse_gradients", &unwanted) && unwanted)
    file.Fail("sparse_gradients", "is not supported: gradients are dense");
  if (const json* amp = file.Object("amp"))
    if (amp->value("enabled", json()) != false)
      file.Fail("amp", "is not supported; enable fp16 or bf16");
  for (const auto& [key, reason] : kWithoutEffect) file.Ignore(key, reason);
  o->loss_scale = {};
  ParseSections(&file, o);
  return file.Finish();
}

Status ReadDeepSpeedConfig(const std::string& path, TrainOptions* options) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  std::string text(kMaxBytes + 1, '\0');
  if (file) text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (!file || std::ferror(file.get()) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "--deepspeed-config {}: {}", path, std::strerror(errno));
  if (text.size() > kMaxBytes)
    return failure(BITRAIL_ERR_CONFIG, "--deepspeed-config {}: larger than {} bytes", path,
                   kMaxBytes);
  return ParseDeepSpeedConfig(text, path, options);
}

}  // namespace bitrail::train
