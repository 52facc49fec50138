// Version 6: version 5 with a slot for the size of chunks, which is left to NCCL.
#include "plugin/abi/tuner_v6.h"

#include "plugin/exports/exports.h"
#include "plugin/tuner/calls.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::TunerV6 ncclTunerPlugin_v6 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::tuner::calls::init_with_constants,
    .get_coll_info = bitrail::plugin::tuner::calls::get_coll_info,
    .finalize = bitrail::plugin::tuner::calls::destroy,
    .get_chunk_size = nullptr,
};
