// What a bitrail_optimizer_t is.
#pragma once

#include <cstdint>
#include <memory>

#include "optimizers/onebit_adam.h"
#include "optimizers/state.h"

struct bitrail_optimizer {
  bitrail::optimizers::State state;
  // Null: plain Adam.
  std::unique_ptr<bitrail::optimizers::OneBitAdam> onebit;
  int64_t step = 0;  // steps that changed something, and the init call
};
