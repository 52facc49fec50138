// The slots of versions 9 and 10.
#pragma once

#include "plugin/abi/collnet_v9.h"
#include "plugin/collnet/calls.h"

namespace bitrail::plugin::collnet {

inline constexpr nccl::CollNetV9 kTableV9 = {
    .name = kName,
    .init = calls::init_shared,
    .devices = calls::devices,
    .get_properties = calls::get_properties<nccl::PropertiesV9>,
    .listen = calls::listen_shared,
    .connect = calls::connect,
    .reduce_support = calls::reduce_support,
    .register_memory = calls::register_memory,
    .register_dmabuf = nullptr,
    .deregister_memory = calls::deregister_memory,
    .iallreduce = calls::iallreduce,
    .iallgather = calls::iallgather<nccl::PartV9>,
    .ireduce_scatter = calls::ireduce_scatter<nccl::PartV9>,
    .iflush = calls::iflush,
    .test = calls::test,
    .close_coll = calls::close_coll,
    .close_listen = calls::close_listen,
    .make_virtual_device = nullptr,
};

}  // namespace bitrail::plugin::collnet
