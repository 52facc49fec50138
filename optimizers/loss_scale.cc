#include "optimizers/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "runtime/trace/log.h"

namespace bitrail::optimizers {
namespace {

Status Overflow(LossScale& s) {
  s.skipped++;
  const bool dynamic = s.kind == BITRAIL_LOSS_SCALE_DYNAMIC;
  s.at_least = !dynamic || s.scale <= s.least ? s.at_least + 1 : 0;
  if (s.at_least >= s.most_skips) {
    return failure(BITRAIL_ERR_NOT_FINITE,
                   "{} steps in a row were skipped at the {} loss scale {}: the parameters or the "
                   "data are broken, or compression began too early (freeze_step)",
                   s.at_least, dynamic ? "smallest" : "static", s.scale);
  }
  if (!dynamic) return {};
  if (s.left > 1) {
    s.left--;
  } else {
    s.scale = std::max(s.scale / 2, s.least);
  }
  s.last_overflow = s.iteration;
  log::info("step skipped: the gradient is not finite; loss scale {}", s.scale);
  return {};
}

}  // namespace

Status LossScale::Update(bool overflow) {
  if (!active()) return {};
  Status status;
  if (overflow) {
    status = Overflow(*this);
  } else {
    at_least = 0;
    if (kind == BITRAIL_LOSS_SCALE_DYNAMIC && (iteration - last_overflow) % window == 0) {
      left = hysteresis;
      if (scale < 0x1p126) scale *= 2;
    }
  }
  iteration++;
  return status;
}

void LossScale::List(StateList* list) {
  if (!active()) return;
  list->add("loss_scale", scale);
  list->add("loss_scale_hysteresis_left", left);
  list->add("loss_scale_iteration", iteration);
  list->add("loss_scale_last_overflow", last_overflow);
  list->add("loss_scale_skipped", skipped);
  list->add("loss_scale_skipped_at_least", at_least);
}

LossScale MakeLossScale(const bitrail_precision_t& options) {
  LossScale s;
  s.kind = options.loss_scale;
  if (!s.active()) return s;
  s.least = options.min_scale;
  s.window = options.scale_window;
  s.hysteresis = s.left = options.hysteresis;
  s.most_skips = options.most_skips;
  s.scale = s.kind == BITRAIL_LOSS_SCALE_STATIC
                ? options.static_scale
                : std::max(std::ldexp(1.0, options.initial_scale_power), s.least);
  return s;
}

}  // namespace bitrail::optimizers
