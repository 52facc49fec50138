// Loss scaling with DeepSpeed's rules (its DynamicLossScaler without consecutive hysteresis).
//
//   overflow  hysteresis left 1: scale = max(scale / 2, min); otherwise one less is left
//   none      `window` steps since the last overflow: scale *= 2, hysteresis refilled
#pragma once

#include <cstdint>

#include "optimizers/options.h"
#include "optimizers/state_list.h"

namespace bitrail::optimizers {

struct LossScale {
  bitrail_loss_scale_t kind = BITRAIL_LOSS_SCALE_NONE;
  double scale = 1, least = 1;
  int64_t window = 1000, hysteresis = 2, most_skips = 50;

  int64_t left = 2;            // hysteresis
  int64_t iteration = 0;       // calls of Update
  int64_t last_overflow = -1;  // iteration
  int64_t skipped = 0;         // steps, in all
  int64_t at_least = 0;        // skipped steps in a row at the smallest scale

  bool active() const { return kind != BITRAIL_LOSS_SCALE_NONE; }
  // After a step, or a skipped one. BITRAIL_ERR_NOT_FINITE where most_skips in a row at the
  // smallest scale changed nothing: the fault is not the scale's.
  Status Update(bool overflow);
  void List(StateList* list);
};

LossScale MakeLossScale(const bitrail_precision_t& options);

}  // namespace bitrail::optimizers
