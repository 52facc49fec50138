// Version 3: whether buffers are registered is not said.
#include "plugin/abi/tuner_v3.h"

#include "plugin/exports/exports.h"
#include "plugin/tuner/calls.h"

namespace bitrail::plugin::tuner {
namespace {

nccl::Result get_coll_info_v3(void* context, int function, size_t bytes, int pipe_ops,
                              float** costs, int algorithms, int protocols, int* channels) {
  return calls::get_coll_info(context, function, bytes, pipe_ops, costs, algorithms, protocols,
                              kAny, channels);
}

}  // namespace
}  // namespace bitrail::plugin::tuner

BITRAIL_PLUGIN_TABLE const bitrail::nccl::TunerV3 ncclTunerPlugin_v3 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::tuner::calls::init,
    .get_coll_info = bitrail::plugin::tuner::get_coll_info_v3,
    .destroy = bitrail::plugin::tuner::calls::destroy,
};
