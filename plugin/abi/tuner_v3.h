// The table ncclTunerPlugin_v3. NCCL 2.22 and 2.23: a cost table.
#pragma once

#include "plugin/abi/tuner_types.h"

namespace bitrail::nccl {

struct TunerV3 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                          int algorithms, int protocols, int* channels);
  Result (*destroy)(void* context);
};
static_assert(sizeof(TunerV3) == 4 * 8 && offsetof(TunerV3, init) == 1 * 8 &&
              offsetof(TunerV3, get_coll_info) == 2 * 8 && offsetof(TunerV3, destroy) == 3 * 8);

}  // namespace bitrail::nccl
