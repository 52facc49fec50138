// Version 11: the plugin's own form.
#include "plugin/abi/collnet_v11.h"

#include "plugin/collnet/calls.h"
#include "plugin/exports/exports.h"

namespace bitrail::plugin::collnet {
namespace {

using nccl::Result;

Result init_v11(void** context, uint64_t comm_id, nccl::Logger logger) {
  return guarded("init", [&] {
    set_logger(logger);
    if (context == nullptr) return refuse("init", "no place for the context");
    *context = nullptr;
    *context = collnet::create_instance(comm_id);
    return nccl::kSuccess;
  });
}

Result listen_v11(void* context, int device, void* handle, void** listen_comm) {
  return guarded("listen", [&] {
    return collnet::listen(collnet::find_instance(context), device, handle, listen_comm);
  });
}

Result finalize_v11(void* context) {
  return guarded("finalize", [&] {
    collnet::destroy_instance(context);
    return nccl::kSuccess;
  });
}

}  // namespace
}  // namespace bitrail::plugin::collnet

BITRAIL_PLUGIN_TABLE const bitrail::nccl::CollNetV11 ncclCollNetPlugin_v11 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::collnet::init_v11,
    .devices = bitrail::plugin::collnet::calls::devices,
    .get_properties = bitrail::plugin::collnet::calls::get_properties<bitrail::nccl::PropertiesV11>,
    .listen = bitrail::plugin::collnet::listen_v11,
    .connect = bitrail::plugin::collnet::calls::connect,
    .reduce_support = bitrail::plugin::collnet::calls::reduce_support,
    .register_memory = bitrail::plugin::collnet::calls::register_memory,
    .register_dmabuf = nullptr,
    .deregister_memory = bitrail::plugin::collnet::calls::deregister_memory,
    .iallreduce = bitrail::plugin::collnet::calls::iallreduce,
    .iallgather = bitrail::plugin::collnet::calls::iallgather<bitrail::nccl::PartV9>,
    .ireduce_scatter = bitrail::plugin::collnet::calls::ireduce_scatter<bitrail::nccl::PartV9>,
    .iflush = bitrail::plugin::collnet::calls::iflush,
    .test = bitrail::plugin::collnet::calls::test,
    .close_coll = bitrail::plugin::collnet::calls::close_coll,
    .close_listen = bitrail::plugin::collnet::calls::close_listen,
    .make_virtual_device = nullptr,
    .finalize = bitrail::plugin::collnet::finalize_v11,
};
