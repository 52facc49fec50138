// What a bitrail_optimizer_t is.
#pragma once

#include <cstdint>
#include <memory>

#include "optimizers/method.h"
#include "optimizers/precision.h"
#include "optimizers/replicas.h"
#include "optimizers/state.h"
#include "optimizers/state_list.h"

struct bitrail_optimizer {
  bitrail::optimizers::Options options;
  bitrail::optimizers::State state;
  std::unique_ptr<bitrail::optimizers::Method> method;
  bitrail::optimizers::Precision precision;
  bitrail::optimizers::Replicas replicas;
  bitrail_comm_t comm = nullptr;  // borrowed
  int64_t step = 0;               // steps that changed something, and the init call
};

namespace bitrail::optimizers {

// Everything that the optimizer keeps, parameters ("param", the masters of 16-bit ones) included.
// `frozen`: whether what the list is for is frozen, which decides what there is; of the optimizer
// itself to read, of the source to fill.
StateList ListState(bitrail_optimizer& optimizer, bool frozen);

// The list was filled from a state after step number `step`: takes it as the optimizer's own.
Status StateLoaded(bitrail_optimizer& optimizer, int64_t step, Loaded rule);

}  // namespace bitrail::optimizers
