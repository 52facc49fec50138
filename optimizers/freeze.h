// When an optimizer's warm-up ends (bitrail_freeze_t).
#pragma once

#include <cstdint>
#include <vector>

#include "optimizers/state.h"
#include "optimizers/state_list.h"

namespace bitrail::optimizers {

struct Freeze {
  bitrail_freeze_t mode = BITRAIL_FREEZE_STEP;
  bitrail_comm_t comm = nullptr;  // borrowed
  const char* name = "";          // of the optimizer, for the log
  int64_t at = 0;                 // step count after which to freeze; not with BITRAIL_FREEZE_AUTO
  int64_t frozen_at = -1;         // step count after which it froze

  // BITRAIL_FREEZE_AUTO: L1 norms of the variance, one each `stride` steps, the newest last.
  double threshold = 0;
  int64_t distance = 0, stride = 1;  // steps
  std::vector<double> norms;         // as many as lie in `distance`, and one
  int64_t recorded = 0;

  bool frozen() const { return frozen_at >= 0; }
  // After full-precision step number `step`: whether to freeze now, the same on all ranks. Sets
  // frozen_at and says so in the log.
  Status Update(const State& state, int64_t step);
  // A state after step number `step` was loaded: frozen by today's options, or, with
  // BITRAIL_FREEZE_AUTO, if it was.
  void Loaded(int64_t step);
  void List(StateList* list);
};

// `counts_training`: freeze_step means training steps (0/1 Adam), not the step counter.
void MakeFreeze(bitrail_comm_t comm, const Options& options, const State& state, const char* name,
                bool counts_training, Freeze* freeze);

}  // namespace bitrail::optimizers
