// Version 7: int sizes in registrations too.
#include "plugin/abi/net_v7.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

Result init_v7(nccl::Logger logger) { return calls::init_shared(logger, nullptr); }

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV7 ncclNetPlugin_v7 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::init_v7,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV7>,
    .listen = bitrail::plugin::calls::listen_shared,
    .connect = bitrail::plugin::calls::connect_shared,
    .accept = bitrail::plugin::calls::accept,
    .register_memory = bitrail::plugin::calls::register_memory_int,
    .register_dmabuf = nullptr,
    .deregister_memory = bitrail::plugin::calls::deregister_memory,
    .isend = bitrail::plugin::calls::isend_int,
    .irecv = bitrail::plugin::calls::irecv_int,
    .iflush = bitrail::plugin::calls::iflush,
    .test = bitrail::plugin::calls::test,
    .close_send = bitrail::plugin::calls::close_send,
    .close_receive = bitrail::plugin::calls::close_receive,
    .close_listen = bitrail::plugin::calls::close_listen,
    .get_device_memory = nullptr,
    .irecv_consumed = nullptr,
};
