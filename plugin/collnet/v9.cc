// Version 9: no contexts.
#include "plugin/abi/collnet_v9.h"

#include "plugin/collnet/calls.h"
#include "plugin/exports/exports.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::CollNetV9 ncclCollNetPlugin_v9 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::collnet::calls::init_shared,
    .devices = bitrail::plugin::collnet::calls::devices,
    .get_properties = bitrail::plugin::collnet::calls::get_properties<bitrail::nccl::PropertiesV9>,
    .listen = bitrail::plugin::collnet::calls::listen_shared,
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
};
