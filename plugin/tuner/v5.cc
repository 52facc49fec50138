// Version 5: a destroy that is called finalize, and the constants of NCCL's model.
#include "plugin/abi/tuner_v5.h"

#include "plugin/exports/exports.h"
#include "plugin/tuner/calls.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::TunerV5 ncclTunerPlugin_v5 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::tuner::calls::init_with_constants,
    .get_coll_info = bitrail::plugin::tuner::calls::get_coll_info,
    .finalize = bitrail::plugin::tuner::calls::destroy,
};
