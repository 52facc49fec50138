// Version 10: as version 9.
#include "plugin/abi/collnet_v10.h"

#include "plugin/collnet/table_v9.h"
#include "plugin/exports/exports.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::CollNetV10 ncclCollNetPlugin_v10 =
    bitrail::plugin::collnet::kTableV9;
