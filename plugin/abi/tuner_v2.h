// The table ncclTunerPlugin_v2. NCCL 2.21 to 2.23: the plugin chooses by itself, without a cost
// table.
#pragma once

#include "plugin/abi/tuner_types.h"

namespace bitrail::nccl {

struct TunerV2 {
  const char* name;
  Result (*init)(size_t ranks, size_t nodes, Logger logger, void** context);
  // Sets *algorithm and *protocol (both or none) and *channels; what stays as it was is NCCL's.
  Result (*get_coll_info)(void* context, int function, size_t bytes, int collnet, int nvls,
                          int pipe_ops, int* algorithm, int* protocol, int* channels);
  Result (*destroy)(void* context);
};
static_assert(sizeof(TunerV2) == 4 * 8 && offsetof(TunerV2, init) == 1 * 8 &&
              offsetof(TunerV2, get_coll_info) == 2 * 8 && offsetof(TunerV2, destroy) == 3 * 8);

}  // namespace bitrail::nccl
