// BITRAIL_CHECK_REPLICAS: are the parameters still the same bits on all ranks?
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <cstdint>

#include "runtime/common/status.h"

namespace bitrail::optimizers {

struct Replicas {
  bitrail_comm_t comm = nullptr;  // borrowed; null: one rank
  int64_t every = 0;              // steps; 0: never
  int64_t checked = 0;            // step of the last check
};

Replicas MakeReplicas(bitrail_comm_t comm);

// Changes whenever a bit of x[0..n) does, but for one case in 2^64.
uint64_t ParameterHash(const float* x, size_t n);

// After step number `step`, at a point where the parameters must be equal: collective once `every`
// steps have passed. BITRAIL_ERR_MISMATCH on all ranks, naming those that differ from rank 0.
Status CheckReplicas(Replicas& replicas, const float* params, size_t n, int64_t step);

}  // namespace bitrail::optimizers
