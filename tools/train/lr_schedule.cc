#include "tools/train/lr_schedule.h"

#include <algorithm>
#include <cmath>

namespace bitrail::train {
namespace {

double Gamma(const WarmupSchedule& s, int64_t iteration) {
  const int64_t warmup = std::max<int64_t>(2, s.warmup_steps);
  const auto i = static_cast<double>(iteration);
  if (iteration < warmup)
    return s.logarithmic ? std::log(i + 1) / std::log(static_cast<double>(warmup))
                         : i / static_cast<double>(warmup);
  if (s.total_steps == 0) return 1;
  const auto falling = static_cast<double>(std::max<int64_t>(1, s.total_steps - warmup));
  return std::max(0.0, static_cast<double>(s.total_steps - iteration) / falling);
}

}  // namespace

double LearningRate(const WarmupSchedule& schedule, int64_t step) {
  const int64_t iteration = schedule.last_iteration + step - 1;
  if (iteration < 0) return schedule.min_lr;
  return schedule.min_lr + (schedule.max_lr - schedule.min_lr) * Gamma(schedule, iteration);
}

}  // namespace bitrail::train
