// The five optimizers over the small model, for tests that hold for several of them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/optimizers/model.h"
#include "tests/optimizers/onebit_parts.h"
#include "tests/support/world.h"

namespace bitrail::test {

using CreateOptimizer = bitrail_status_t (*)(bitrail_optimizer_t*, bitrail_comm_t,
                                             const bitrail_optimizer_options_t*);

struct Kind {
  const char* name;
  CreateOptimizer create;
  bool onebit;
};

inline const Kind kAdam = {"adam", bitrail_adam_create, false};
inline const Kind kLamb = {"lamb", bitrail_lamb_create, false};
inline const Kind kOneBitAdam = {"onebit_adam", bitrail_onebit_adam_create, true};
inline const Kind kZeroOneAdam = {"zero_one_adam", bitrail_zero_one_adam_create, true};
inline const Kind kOneBitLamb = {"onebit_lamb", bitrail_onebit_lamb_create, true};

inline std::vector<Kind> AllKinds() {
  return {kAdam, kLamb, kOneBitAdam, kZeroOneAdam, kOneBitLamb};
}
inline std::vector<Kind> OneBitKinds() { return {kOneBitAdam, kZeroOneAdam, kOneBitLamb}; }

// Intervals that double after few steps.
inline bitrail_zero_one_t ShortIntervals() { return {sizeof(bitrail_zero_one_t), 2, 4, 4}; }

inline bitrail_optimizer_t Make(const Kind& kind, bitrail_comm_t comm,
                                const bitrail_optimizer_options_t& options) {
  bitrail_optimizer_t optimizer = nullptr;
  EXPECT_EQ(kind.create(&optimizer, comm, &options), BITRAIL_OK) << bitrail_last_error();
  return optimizer;
}

// The gradient that the optimizer asks for.
inline std::vector<float> Wanted(bitrail_optimizer_t optimizer, bitrail_comm_t comm, int step) {
  const int rank = bitrail_comm_rank(comm), world = bitrail_comm_world_size(comm);
  std::vector<float> gradient = SmallModel::Gradient(step, rank);
  if (bitrail_optimizer_gradient(optimizer) == BITRAIL_GRADIENT_LOCAL || world < 2) return gradient;
  for (int other = 0; other < world; other++) {
    const std::vector<float> theirs = SmallModel::Gradient(step, other);
    for (size_t i = 0; i < gradient.size(); i++)
      gradient[i] = (other == 0 ? 0 : gradient[i]) + theirs[i];
  }
  for (float& g : gradient) g *= 1.0f / static_cast<float>(world);
  return gradient;
}

inline void Step(bitrail_optimizer_t optimizer, bitrail_comm_t comm, int step) {
  ASSERT_EQ(bitrail_optimizer_step(optimizer, Wanted(optimizer, comm, step).data()), BITRAIL_OK)
      << bitrail_last_error();
}

inline bitrail_counters_t Counters(bitrail_comm_t comm) {
  bitrail_counters_t counters = {};
  counters.struct_size = sizeof counters;
  EXPECT_EQ(bitrail_comm_counters(comm, &counters), BITRAIL_OK);
  return counters;
}

}  // namespace bitrail::test
