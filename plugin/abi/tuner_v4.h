// The table ncclTunerPlugin_v4. NCCL 2.24 to 2.27.
#pragma once

#include "plugin/abi/tuner_types.h"

namespace bitrail::nccl {

struct TunerV4 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*destroy)(void* context);
};
static_assert(sizeof(TunerV4) == 4 * 8 && offsetof(TunerV4, init) == 1 * 8 &&
              offsetof(TunerV4, get_coll_info) == 2 * 8 && offsetof(TunerV4, destroy) == 3 * 8);

}  // namespace bitrail::nccl
