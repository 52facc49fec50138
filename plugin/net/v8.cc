// Version 8: int sizes in isend and irecv.
#include "plugin/abi/net_v8.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

Result init_v8(nccl::Logger logger) { return calls::init_shared(logger, nullptr); }

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV8 ncclNetPlugin_v8 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::init_v8,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV8>,
    .listen = bitrail::plugin::calls::listen_shared,
    .connect = bitrail::plugin::calls::connect_shared,
    .accept = bitrail::plugin::calls::accept,
    .register_memory = bitrail::plugin::calls::register_memory,
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
