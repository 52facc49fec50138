// Flat optimizer state over the parameters: one momentum and one variance per parameter, cut into
// segments (tensors) that follow each other without padding.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/host/adam.h"
#include "optimizers/options.h"

namespace bitrail::optimizers {

// The hyper-parameters of a group, as the kernels want them.
struct Group {
  kernels::AdamFactors factors;
  double lr = 0, beta1 = 0, beta2 = 0;
  bool non_freeze = false;
};

struct Segment {
  size_t offset = 0, count = 0;  // elements, in the flat arrays
  size_t group = 0;
  std::vector<float> mask;  // (count) of 0 or 1; empty: none

  // From element `begin` on; null: none.
  const float* mask_at(size_t begin) const { return mask.empty() ? nullptr : mask.data() + begin; }
};

struct State {
  float* params = nullptr;     // (elements), the caller's, or
  std::vector<float> masters;  // what stands for the caller's 16-bit ones
  std::vector<float> m, v;     // (elements): exp_avg, exp_avg_sq
  std::vector<Segment> segments;
  std::vector<Group> groups;

  size_t elements() const { return m.size(); }
  const Group& group(const Segment& segment) const { return groups[segment.group]; }
  // Bytes beyond the parameters: momentum, variance, masks, masters.
  size_t bytes() const;
};

// Checks groups and segments and lays out zero state; masters are filled from 16-bit parameters.
// What is wrong is named in the text.
Status MakeState(const Options& options, State* state);

}  // namespace bitrail::optimizers
