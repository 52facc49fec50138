// The table ncclTunerPlugin_v5. NCCL 2.28 and later: NVLink domains and the constants of NCCL's
// model.
#pragma once

#include "plugin/abi/tuner_types.h"

namespace bitrail::nccl {

struct TunerV5 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
                 NvlinkDomains* domains, TunerConstants* constants);
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*finalize)(void* context);
};
static_assert(sizeof(TunerV5) == 4 * 8 && offsetof(TunerV5, init) == 1 * 8 &&
              offsetof(TunerV5, get_coll_info) == 2 * 8 && offsetof(TunerV5, finalize) == 3 * 8);

}  // namespace bitrail::nccl
