// The slots that several tuner table versions share, with NCCL's calling convention. What one
// version alone needs is in its own file.
#pragma once

#include "plugin/net/calls.h"
#include "plugin/tuner/core.h"

namespace bitrail::plugin::tuner::calls {

// To version 4.
nccl::Result init(size_t ranks, size_t nodes, nccl::Logger logger, void** context);
// From version 5. `constants` is read and stays as it is: they are for NCCL's own model.
nccl::Result init_with_constants(void** context, uint64_t comm_id, size_t ranks, size_t nodes,
                                 nccl::Logger logger, nccl::NvlinkDomains* domains,
                                 nccl::TunerConstants* constants);
// From version 4.
nccl::Result get_coll_info(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                           int algorithms, int protocols, int registered, int* channels);
// destroy() or finalize(). NCCL may call it for what it never initialized.
nccl::Result destroy(void* context);

}  // namespace bitrail::plugin::tuner::calls
