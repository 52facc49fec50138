// Flat optimizer state over the caller's parameters: one momentum and one variance per parameter,
// cut into segments (tensors) that follow each other without padding.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <vector>

#include "kernels/host/adam.h"
#include "runtime/common/status.h"

namespace bitrail::optimizers {

// The hyper-parameters of a group, as the kernels want them.
struct Group {
  kernels::AdamFactors factors;
  double beta1 = 0, beta2 = 0;
};

struct Segment {
  size_t offset = 0, count = 0;  // elements, in the flat arrays
  size_t group = 0;
  std::vector<float> mask;  // (count) of 0 or 1; empty: none
};

struct State {
  float* params = nullptr;  // (elements), the caller's
  std::vector<float> m, v;  // (elements): exp_avg, exp_avg_sq
  std::vector<Segment> segments;
  std::vector<Group> groups;

  size_t elements() const { return m.size(); }
  // Bytes beyond the parameters: momentum, variance, masks.
  size_t bytes() const;
};

// Checks the options and lays out zero state. A wrong option is named in the text.
Status MakeState(const bitrail_optimizer_options_t* options, State* state);

// Options that callers compiled against an earlier header do not have: zero.
bool UpdateDead(const bitrail_optimizer_options_t& options);

}  // namespace bitrail::optimizers
