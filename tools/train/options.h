// What `bitrail train` can be told, and the checks.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/common/status.h"
#include "tools/train/lr_schedule.h"
#include "tools/train/shape.h"

namespace bitrail::train {

// naive_onebit is the negative control: Adam fed with 1-bit gradients from the first step.
enum class OptimizerKind : uint8_t {
  adam,
  onebit_adam,
  zero_one_adam,
  lamb,
  onebit_lamb,
  naive_onebit,
};

// When a 1-bit optimizer stops updating its variance.
struct Freeze {
  enum class Kind : uint8_t { steps, share, automatic };
  Kind kind = Kind::share;
  int64_t steps = 0;    // Kind::steps
  double percent = 15;  // Kind::share: of all steps
};

// Precision of the stored parameters and of the exchanged gradient; computing is float32.
enum class Precision : uint8_t { fp32, fp16, bf16 };

// DeepSpeed's fp16 section. A positive `fixed` scale never moves.
struct LossScale {
  double fixed = 0;
  int64_t initial_power = 16;  // starts at 2^initial_power
  int64_t window = 1000;       // steps without overflow before it doubles
  int64_t hysteresis = 2;      // overflows before it halves
  double minimum = 1;
};

// Rows a rank and micro-batch, micro-batches a step, and their product over the ranks; 0: not said.
struct BatchSizes {
  int64_t train = 0, micro = 0, accumulation = 0;
};

struct TrainOptions {
  Shape shape;  // vocabulary and masked follow from corpus and sequence
  BatchSizes batch = {0, 8, 1};
  int64_t steps = 200;
  std::string deepspeed_config;  // file; empty: none
  double schedule_scale = 1;     // what the file counts in steps is multiplied by this

  OptimizerKind optimizer = OptimizerKind::adam;
  Freeze freeze;           // for zero-one-adam: var_freeze_step
  bool init_call = false;  // DeepSpeed's count: freeze N means N - 1 steps in full precision
  bitrail_scale_t scale = BITRAIL_SCALE_SEGMENT;
  bitrail_layout_t layout = BITRAIL_LAYOUT_DEFAULT;  // what shares a scale
  bitrail_padding_t padding = BITRAIL_PADDING_DEEPSPEED;
  uint32_t compat = 0;  // BITRAIL_COMPAT_*
  double lr = 3e-3;
  double lamb_lr = 1e-2;   // of lamb and onebit-lamb, whose update is scaled to the tensor's norm
  int64_t lr_warmup = 10;  // steps of linear rise to lr
  bool lr_decay = true;    // linear fall from there to 0 behind the last step
  std::optional<WarmupSchedule> warmup;  // DeepSpeed's schedule instead of the two above
  double beta1 = 0.9;
  double beta2 =
      0.9;  // forgets fast enough for a freeze after 30 steps: there is no bias correction
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t var_update_scaler = 16;     // zero-one-adam: variance updates before their gap doubles
  int64_t local_step_scaler = 32678;  // zero-one-adam: frozen steps before the local interval does
  int64_t local_step_clipper = 16;    // zero-one-adam: longest local interval
  double max_coeff = 10, min_coeff = 0.01;  // lamb: bounds of |x| / |update|
  double coeff_beta = 0.9;                  // onebit-lamb: decay of its average
  double factor_max = 4, factor_min = 0.5;  // onebit-lamb: bounds of the correction when frozen
  double factor_threshold = 0.1;            // onebit-lamb: its largest change a step
  bool mask = true;                         // momentum masks, see parameters.h
  double clip = 0;                          // largest norm of the gradient; 0: no clipping
  Precision precision = Precision::fp32;
  LossScale loss_scale;

  uint64_t seed = 1;
  int64_t seeds = 1;                   // runs with seed, seed + 1, ...
  uint64_t eval_seed = 1;              // of the held-out batches: the same for all runs of a job
  std::vector<OptimizerKind> compare;  // runs of each; empty: of `optimizer`
  std::string plot;                    // SVG file; empty: none
  std::string save;                    // checkpoint's folder, replaced at each save; empty: none
  int64_t save_every = 0;              // steps; 0: after the last one only
  std::string resume;                  // checkpoint's folder to start from; empty: from the start
  bool reset_errors = false;           // DeepSpeed's rule for a resumed run's error feedback
  std::string corpus;                  // file; empty: WordNet's glosses
  std::string json;                    // file; empty: none
  int64_t eval_batches = 20;           // held-out batches a rank after the last step
  int64_t print_every = 0;             // steps between lines; 0: twenty lines a run
  std::string comm_backend = "nccl";   // DeepSpeed's word; "mpi" demands an MPI or PMIx launcher
  std::vector<std::string> notes;      // what the configuration says and nobody follows
};

// Refuses what cannot work, naming the option.
Status CheckOptions(const TrainOptions& options);

// "400", "15%" or "auto".
Status ParseFreeze(std::string_view text, Freeze* freeze);
// The freeze step in force, where it is known beforehand.
int64_t FreezeStep(const TrainOptions& options);

// Adds the switch of that name to *compat: "update-dead" is BITRAIL_COMPAT_UPDATE_DEAD, "deepspeed"
// all of them.
Status ParseCompat(std::string_view name, uint32_t* compat);

// Learning rate of the optimizer's family at a step, counted from 1.
double LearningRate(const TrainOptions& options, int64_t step);

// DeepSpeed's rule: train = micro * accumulation * ranks; two of the three, or one of the first
// two, give the rest. Sets all of options->batch, and shape.batch.
Status ResolveBatch(int64_t world_size, TrainOptions* options);

const char* Name(OptimizerKind kind);
const char* Name(Precision precision);
// False: there is no optimizer of that name.
bool FindOptimizer(std::string_view name, OptimizerKind* kind);
inline bool IsLamb(OptimizerKind kind) {
  return kind == OptimizerKind::lamb || kind == OptimizerKind::onebit_lamb;
}

// Those that compress by themselves.
inline bool IsOneBit(OptimizerKind kind) {
  return kind == OptimizerKind::onebit_adam || kind == OptimizerKind::zero_one_adam ||
         kind == OptimizerKind::onebit_lamb;
}

}  // namespace bitrail::train
