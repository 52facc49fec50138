// DeepSpeed's schedules WarmupLR and WarmupDecayLR.
//
// Iteration i = last_iteration + s - 1 for training step s (from 1): the scheduler moves after the
// optimizer, so the first step runs at min_lr, and so does the second (i = 0).
//   i < warmup     min_lr + (max_lr - min_lr) * gamma,  gamma = ln(i + 1) / ln(warmup)  or  i /
//   warmup WarmupLR       max_lr WarmupDecayLR  min_lr + (max_lr - min_lr) * max(0, (total - i) /
//   max(1, total - warmup))
#pragma once

#include <cstdint>

namespace bitrail::train {

struct WarmupSchedule {
  double min_lr = 0, max_lr = 1e-3;
  int64_t warmup_steps = 1000;  // at least 2 count
  bool logarithmic = true;      // how it rises; false: linearly
  int64_t total_steps = 0;      // 0: WarmupLR, no decay
  int64_t last_iteration = -1;  // where the schedule stands before the first step
};

double LearningRate(const WarmupSchedule& schedule, int64_t step);

}  // namespace bitrail::train
