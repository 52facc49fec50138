#include "tools/train/options.h"

#include <algorithm>
#include <cmath>

namespace bitrail::train {
namespace {

// Bounds that keep every size well inside 31 bits and the memory of a host.
constexpr int64_t kMaxSide = 1 << 14;

struct Range {
  const char* option;
  int64_t value, low, high;
};

Status CheckRange(const Range& range) {
  if (range.value >= range.low && range.value <= range.high) return {};
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} {}: must be between {} and {}", range.option,
                 range.value, range.low, range.high);
}

Status CheckNumbers(const TrainOptions& options) {
  const auto bad = [](const char* option, double value, const char* rule) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} {}: must be {}", option, value, rule);
  };
  const auto is_beta = [](double beta) { return beta >= 0 && beta < 1; };
  if (!(options.lr > 0) || !std::isfinite(options.lr)) return bad("--lr", options.lr, "positive");
  if (!is_beta(options.beta1)) return bad("--beta1", options.beta1, "at least 0 and below 1");
  if (!is_beta(options.beta2)) return bad("--beta2", options.beta2, "at least 0 and below 1");
  if (!(options.eps > 0) || !std::isfinite(options.eps))
    return bad("--eps", options.eps, "positive");
  if (!(options.weight_decay >= 0) || !std::isfinite(options.weight_decay))
    return bad("--weight-decay", options.weight_decay, "0 or more");
  return {};
}

}  // namespace

Status CheckOptions(const TrainOptions& options) {
  const Shape& shape = options.shape;
  for (const Range& range :
       {Range{"--layers", shape.layers, 0, 1000}, Range{"--width", shape.width, 2, kMaxSide},
        Range{"--heads", shape.heads, 1, shape.width},
        Range{"--seq", shape.sequence, 8, shape.positions},
        Range{"--batch", shape.batch, 1, kMaxSide}, Range{"--steps", options.steps, 1, 1 << 30},
        Range{"--freeze-step", options.freeze_step, -1, 1 << 30},
        Range{"--lr-warmup", options.lr_warmup, 0, 1 << 30},
        Range{"--eval", options.eval_batches, 0, 1 << 20}})
    BITRAIL_TRY(CheckRange(range));
  if (shape.width % shape.heads != 0 || shape.width % 2 != 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--width {}: must be even and a multiple of --heads {}", shape.width,
                   shape.heads);
  return CheckNumbers(options);
}

int64_t FreezeStep(const TrainOptions& options) {
  if (options.freeze_step >= 0) return options.freeze_step;
  return std::max<int64_t>(1, options.steps * 15 / 100);
}

double LearningRate(const TrainOptions& options, int64_t step) {
  if (step < options.lr_warmup)
    return options.lr * static_cast<double>(step) / static_cast<double>(options.lr_warmup);
  if (!options.lr_decay) return options.lr;
  const int64_t start = std::max<int64_t>(1, options.lr_warmup);
  return options.lr * static_cast<double>(options.steps - step + 1) /
         static_cast<double>(options.steps - start + 1);
}

const char* Name(OptimizerKind kind) {
  return kind == OptimizerKind::adam ? "adam" : "onebit-adam";
}

}  // namespace bitrail::train
