// Version 2: the plugin chooses without a cost table.
#include "plugin/abi/tuner_v2.h"

#include "plugin/exports/exports.h"
#include "plugin/tuner/calls.h"

namespace bitrail::plugin::tuner {
namespace {

nccl::Result get_coll_info_v2(void* context, int function, size_t bytes, int collnet, int nvls,
                              int pipe_ops, int* algorithm, int* protocol, int* channels) {
  return guarded("getCollInfo", [&] {
    const Tuner* tuner = find(context);
    if (tuner == nullptr) return refuse("getCollInfo", "unknown context");
    if (algorithm == nullptr || protocol == nullptr || channels == nullptr) {
      return refuse("getCollInfo", "no place for the choice");
    }
    choose(*tuner, {function, bytes, pipe_ops}, collnet != 0, nvls != 0, algorithm, protocol,
           channels);
    return nccl::kSuccess;
  });
}

}  // namespace
}  // namespace bitrail::plugin::tuner

BITRAIL_PLUGIN_TABLE const bitrail::nccl::TunerV2 ncclTunerPlugin_v2 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::tuner::calls::init,
    .get_coll_info = bitrail::plugin::tuner::get_coll_info_v2,
    .destroy = bitrail::plugin::tuner::calls::destroy,
};
