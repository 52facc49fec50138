#include "tools/train/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/config/parse.h"

namespace bitrail::train {
namespace {

// Bounds that keep every size well inside 31 bits and the memory of a host.
constexpr int64_t kMaxSide = 1 << 14;
constexpr int64_t kMaxSteps = 1 << 30;
constexpr int64_t kMaxAccumulation = 1 << 20;

constexpr std::array kOptimizers = {
    std::pair{OptimizerKind::adam, "adam"},
    std::pair{OptimizerKind::onebit_adam, "onebit-adam"},
    std::pair{OptimizerKind::zero_one_adam, "zero-one-adam"},
    std::pair{OptimizerKind::lamb, "lamb"},
    std::pair{OptimizerKind::onebit_lamb, "onebit-lamb"},
    std::pair{OptimizerKind::naive_onebit, "naive-onebit"},
};

constexpr std::pair<std::string_view, uint32_t> kCompat[] = {
    {"update-dead", BITRAIL_COMPAT_UPDATE_DEAD},
    {"first-step-lost", BITRAIL_COMPAT_FIRST_STEP_LOST},
    {"zero-one-load", BITRAIL_COMPAT_ZERO_ONE_LOAD},
    {"accumulator", BITRAIL_COMPAT_ACCUMULATOR},
    {"zero-lr", BITRAIL_COMPAT_ZERO_LR},
    {"alone-stands-still", BITRAIL_COMPAT_ALONE_STANDS_STILL},
    {"zero-momentum", BITRAIL_COMPAT_ZERO_MOMENTUM},
    {"dead-ratio", BITRAIL_COMPAT_DEAD_RATIO},
    {"fresh-from-zero", BITRAIL_COMPAT_FRESH_FROM_ZERO},
    {"local-clip", BITRAIL_COMPAT_LOCAL_CLIP},
    {"deepspeed", BITRAIL_COMPAT_DEEPSPEED},
};

struct Range {
  const char* option;
  int64_t value, low, high;
};

Status CheckRange(const Range& range) {
  if (range.value >= range.low && range.value <= range.high) return {};
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} {}: must be between {} and {}", range.option,
                 range.value, range.low, range.high);
}

struct RealRange {
  const char* option;
  double value, low, high;  // both allowed
  const char* rule;
};

Status CheckNumbers(const TrainOptions& o) {
  constexpr double kHuge = std::numeric_limits<float>::max();
  constexpr double kTiny = std::numeric_limits<float>::min();
  constexpr double kBelowOne = 1 - 1e-9;
  const bool scheduled = o.warmup.has_value();
  for (const RealRange& range :
       {RealRange{"--lr", scheduled ? 1 : o.lr, kTiny, kHuge, "positive"},
        RealRange{"--lamb-lr", scheduled ? 1 : o.lamb_lr, kTiny, kHuge, "positive"},
        RealRange{"--beta1", o.beta1, 0, kBelowOne, "at least 0 and below 1"},
        RealRange{"--beta2", o.beta2, 0, kBelowOne, "at least 0 and below 1"},
        RealRange{"--eps", o.eps, kTiny, kHuge, "positive"},
        RealRange{"--weight-decay", o.weight_decay, 0, kHuge, "0 or more"},
        RealRange{"--clip", o.clip, 0, kHuge, "0 or more"},
        RealRange{"--loss-scale", o.loss_scale.fixed, 0, kHuge, "0 or more"},
        RealRange{"--min-loss-scale", o.loss_scale.minimum, kTiny, kHuge, "positive"},
        RealRange{"--min-coeff", o.min_coeff, 0, kHuge, "0 or more"},
        RealRange{"--max-coeff", o.max_coeff, o.min_coeff, kHuge, "at least --min-coeff"},
        RealRange{"--coeff-beta", o.coeff_beta, 0, kBelowOne, "at least 0 and below 1"},
        RealRange{"--factor-min", o.factor_min, 0, kHuge, "0 or more"},
        RealRange{"--factor-max", o.factor_max, o.factor_min, kHuge, "at least --factor-min"},
        RealRange{"--factor-threshold", o.factor_threshold, 0, kBelowOne,
                  "at least 0 and below 1"}}) {
    if (range.value >= range.low && range.value <= range.high) continue;
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} {}: must be {}", range.option, range.value,
                   range.rule);
  }
  return {};
}

Status CheckCheckpoints(const TrainOptions& options) {
  if (options.save_every > 0 && options.save.empty())
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "--every {}: needs --save DIR",
                   options.save_every);
  if (options.save.empty() && options.resume.empty()) return {};
  if (!options.compare.empty() || options.seeds > 1)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--save and --resume are for one run, not with --compare or --seeds");
  if (options.optimizer == OptimizerKind::naive_onebit)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "--save and --resume: not with {}",
                   Name(options.optimizer));
  return {};
}

Status BatchFailure(const BatchSizes& b, int64_t world_size, const char* why) {
  return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                 "batch sizes: {}. train_batch_size {}, train_micro_batch_size_per_gpu {}, "
                 "gradient_accumulation_steps {}, {} ranks (0: not given); the first must be the "
                 "product of the others. --batch and --accumulation replace the file's sizes",
                 why, b.train, b.micro, b.accumulation, world_size);
}

}  // namespace

Status CheckOptions(const TrainOptions& options) {
  const Shape& shape = options.shape;
  for (const Range& range :
       {Range{"--layers", shape.layers, 0, 1000}, Range{"--width", shape.width, 2, kMaxSide},
        Range{"--heads", shape.heads, 1, shape.width},
        Range{"--seq", shape.sequence, 8, shape.positions},
        Range{"--batch", options.batch.micro, options.batch.train > 0 ? 0 : 1, kMaxSide},
        Range{"--accumulation", options.batch.accumulation, 0, kMaxAccumulation},
        Range{"--steps", options.steps, 1, kMaxSteps},
        Range{"--freeze-step", options.freeze.steps, 0, kMaxSteps},
        Range{"--lr-warmup", options.lr_warmup, 0, kMaxSteps},
        Range{"--var-update-scaler", options.var_update_scaler, 1, kMaxSteps},
        Range{"--local-step-scaler", options.local_step_scaler, 1, kMaxSteps},
        Range{"--local-step-clipper", options.local_step_clipper, 1, kMaxSteps},
        Range{"--initial-scale-power", options.loss_scale.initial_power, 0, 126},
        Range{"--loss-scale-window", options.loss_scale.window, 1, kMaxSteps},
        Range{"--hysteresis", options.loss_scale.hysteresis, 1, kMaxSteps},
        Range{"--every", options.save_every, 0, kMaxSteps},
        Range{"--seeds", options.seeds, 1, 1000},
        Range{"--print-every", options.print_every, 0, kMaxSteps},
        Range{"--eval", options.eval_batches, 0, 1 << 20}})
    BITRAIL_TRY(CheckRange(range));
  if (shape.width % shape.heads != 0 || shape.width % 2 != 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--width {}: must be even and a multiple of --heads {}", shape.width,
                   shape.heads);
  BITRAIL_TRY(CheckCheckpoints(options));
  return CheckNumbers(options);
}

Status ParseFreeze(std::string_view text, Freeze* freeze) {
  double percent = 0;
  int64_t steps = 0;
  if (text == "auto") {
    freeze->kind = Freeze::Kind::automatic;
  } else if (text.ends_with('%') && config::parse_real(text.substr(0, text.size() - 1), &percent) &&
             percent >= 0 && percent <= 100) {
    freeze->kind = Freeze::Kind::share;
    freeze->percent = percent;
  } else if (config::parse_integer(text, &steps) && steps >= 0) {
    freeze->kind = Freeze::Kind::steps;
    freeze->steps = steps;
  } else {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--freeze-step {}: must be a number of steps (400), a share of all steps (15%) "
                   "or auto",
                   text);
  }
  return {};
}

Status ParseCompat(std::string_view name, uint32_t* compat) {
  std::string all;
  for (const auto& [known, bits] : kCompat) {
    if (known == name) {
      *compat |= bits;
      return {};
    }
    all += fmt::format("{}{}", all.empty() ? "" : ", ", known);
  }
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "--compat {}: must be of {}", name, all);
}

int64_t FreezeStep(const TrainOptions& options) {
  if (options.freeze.kind == Freeze::Kind::steps) return options.freeze.steps;
  const double steps = static_cast<double>(options.steps) * options.freeze.percent / 100;
  return std::max<int64_t>(1, static_cast<int64_t>(steps + 1e-9));
}

double LearningRate(const TrainOptions& options, int64_t step) {
  if (options.warmup) return LearningRate(*options.warmup, step);
  const double lr = IsLamb(options.optimizer) ? options.lamb_lr : options.lr;
  if (step < options.lr_warmup)
    return lr * static_cast<double>(step) / static_cast<double>(options.lr_warmup);
  if (!options.lr_decay) return lr;
  const int64_t start = std::max<int64_t>(1, options.lr_warmup);
  return lr * static_cast<double>(options.steps - step + 1) /
         static_cast<double>(options.steps - start + 1);
}

Status ResolveBatch(int64_t world_size, TrainOptions* options) {
  BatchSizes b = options->batch;
  if (b.train > 0) {
    if (b.micro == 0) b.micro = b.train / world_size / std::max<int64_t>(1, b.accumulation);
    if (b.micro == 0) return BatchFailure(options->batch, world_size, "less than a row a rank");
    if (b.accumulation == 0) b.accumulation = b.train / b.micro / world_size;
  }
  if (b.micro == 0) return BatchFailure(options->batch, world_size, "give one of the first two");
  if (b.accumulation == 0) b.accumulation = 1;
  // Bounded like this the product stays far below 63 bits.
  if (b.micro > kMaxSide || b.accumulation > kMaxAccumulation)
    return BatchFailure(options->batch, world_size, "too many rows a rank or micro-batches");
  const int64_t product = b.micro * b.accumulation * world_size;
  if (b.train > 0 && product != b.train)
    return BatchFailure(options->batch, world_size, "they do not fit together");
  b.train = product;
  options->batch = b;
  options->shape.batch = b.micro;
  return {};
}

const char* Name(OptimizerKind kind) {
  for (const auto& [known, name] : kOptimizers)
    if (known == kind) return name;
  return "?";
}

bool FindOptimizer(std::string_view name, OptimizerKind* kind) {
  for (const auto& [known, text] : kOptimizers) {
    if (name != text) continue;
    *kind = known;
    return true;
  }
  return false;
}

const char* Name(Precision precision) {
  switch (precision) {
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
    case Precision::fp32:
      break;
  }
  return "fp32";
}

}  // namespace bitrail::train
