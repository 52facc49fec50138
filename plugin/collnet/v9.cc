// Version 9: no contexts.
#include "plugin/collnet/table_v9.h"
#include "plugin/exports/exports.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::CollNetV9 ncclCollNetPlugin_v9 =
    bitrail::plugin::collnet::kTableV9;
