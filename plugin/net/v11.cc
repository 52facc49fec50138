// Version 11: smaller properties.
#include "plugin/abi/net_v11.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV11 ncclNetPlugin_v11 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::calls::init,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV11>,
    .listen = bitrail::plugin::calls::listen,
    .connect = bitrail::plugin::calls::connect,
    .accept = bitrail::plugin::calls::accept,
    .register_memory = bitrail::plugin::calls::register_memory,
    .register_dmabuf = nullptr,
    .deregister_memory = bitrail::plugin::calls::deregister_memory,
    .isend = bitrail::plugin::calls::isend,
    .irecv = bitrail::plugin::calls::irecv,
    .iflush = bitrail::plugin::calls::iflush,
    .test = bitrail::plugin::calls::test,
    .close_send = bitrail::plugin::calls::close_send,
    .close_receive = bitrail::plugin::calls::close_receive,
    .close_listen = bitrail::plugin::calls::close_listen,
    .get_device_memory = nullptr,
    .irecv_consumed = nullptr,
    .make_virtual_device = bitrail::plugin::calls::make_device<bitrail::nccl::VirtualDeviceV9>,
    .finalize = bitrail::plugin::calls::finalize,
    .set_attributes = nullptr,
};
