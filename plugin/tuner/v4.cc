// Version 4.
#include "plugin/abi/tuner_v4.h"

#include "plugin/exports/exports.h"
#include "plugin/tuner/calls.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::TunerV4 ncclTunerPlugin_v4 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::tuner::calls::init,
    .get_coll_info = bitrail::plugin::tuner::calls::get_coll_info,
    .destroy = bitrail::plugin::tuner::calls::destroy,
};
