// The table ncclTunerPlugin_v6. NCCL 2.30: version 5, and the size of chunks.
#pragma once

#include "plugin/abi/tuner_types.h"

namespace bitrail::nccl {

struct TunerV6 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, size_t ranks, size_t nodes, Logger logger,
                 NvlinkDomains* domains, TunerConstants* constants);
  Result (*get_coll_info)(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                          int algorithms, int protocols, int registered, int* channels);
  Result (*finalize)(void* context);
  Result (*get_chunk_size)(void* context, int function, size_t bytes, int algorithm, int protocol,
                           int channels, size_t* chunk_bytes);  // may be null
};
static_assert(sizeof(TunerV6) == 5 * 8 && offsetof(TunerV6, init) == 1 * 8 &&
              offsetof(TunerV6, get_coll_info) == 2 * 8 && offsetof(TunerV6, finalize) == 3 * 8 &&
              offsetof(TunerV6, get_chunk_size) == 4 * 8);

}  // namespace bitrail::nccl
