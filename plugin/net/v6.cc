// Version 6: no handles for device offload.
#include "plugin/abi/net_v6.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

Result init_v6(nccl::Logger logger) { return calls::init_shared(logger, nullptr); }

Result connect_v6(int device, void* handle, void** send_comm) {
  return calls::connect_shared(device, handle, send_comm, nullptr);
}

Result accept_v6(void* listen_comm, void** receive_comm) {
  return calls::accept(listen_comm, receive_comm, nullptr);
}

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV6 ncclNetPlugin_v6 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::init_v6,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV6>,
    .listen = bitrail::plugin::calls::listen_shared,
    .connect = bitrail::plugin::connect_v6,
    .accept = bitrail::plugin::accept_v6,
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
};
