// The table ncclCollNetPlugin_v10. NCCL 2.26 and later: as version 9, to the slot.
#pragma once

#include "plugin/abi/collnet_v9.h"

namespace bitrail::nccl {

using CollNetV10 = CollNetV9;

}  // namespace bitrail::nccl
