// What `bitrail train` can be told, the checks, and the learning-rate schedule.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <string>

#include "runtime/common/status.h"
#include "tools/train/shape.h"

namespace bitrail::train {

enum class OptimizerKind : uint8_t { adam, onebit_adam };

struct TrainOptions {
  Shape shape;  // vocabulary and masked follow from corpus and sequence
  int64_t steps = 200;
  OptimizerKind optimizer = OptimizerKind::adam;
  int64_t freeze_step = -1;  // full-precision steps of 1-bit Adam; < 0: 15 % of steps
  bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
  double lr = 3e-3;
  int64_t lr_warmup = 10;  // steps of linear rise to lr
  bool lr_decay = true;    // linear fall from there to 0 behind the last step
  double beta1 = 0.9;
  double beta2 =
      0.9;  // forgets fast enough for a freeze after 30 steps: there is no bias correction
  double eps = 1e-8;
  double weight_decay = 0;
  bool mask = true;  // momentum masks, see parameters.h
  uint64_t seed = 1;
  std::string corpus;         // file; empty: WordNet's glosses
  std::string json;           // file; empty: none
  int64_t eval_batches = 20;  // held-out batches a rank after the last step
};

// Refuses what cannot work, naming the option.
Status CheckOptions(const TrainOptions& options);

// The freeze step in force.
int64_t FreezeStep(const TrainOptions& options);

// Learning rate of a step, counted from 1.
double LearningRate(const TrainOptions& options, int64_t step);

const char* Name(OptimizerKind kind);

}  // namespace bitrail::train
