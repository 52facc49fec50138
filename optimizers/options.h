// The caller's options, complete: what a shorter structure or a NULL leaves out is filled in.
#pragma once

#include <bitrail/bitrail.h>

#include "runtime/common/status.h"

namespace bitrail::optimizers {

struct Options {
  bitrail_optimizer_options_t c = {};
  bitrail_zero_one_t zero_one = {};
  bitrail_lamb_t lamb = {};
  bitrail_precision_t precision = {};

  bool compat(unsigned bit) const { return (c.compat & bit) != 0; }
  // Whether a first call that is no training step counts.
  bool init_counts() const { return c.init_call != 0 || compat(BITRAIL_COMPAT_FIRST_STEP_LOST); }
};

// Copies and checks all but groups and segments (state.h). A wrong option is named in the text.
Status ReadOptions(const bitrail_optimizer_options_t* from, Options* to);

}  // namespace bitrail::optimizers
