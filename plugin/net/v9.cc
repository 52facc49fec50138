// Version 9: no profiler.
#include "plugin/abi/net_v9.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

Result init_v9(nccl::Logger logger) { return calls::init_shared(logger, nullptr); }

Result isend_v9(void* send_comm, void* data, size_t bytes, int tag, void* memory, void** request) {
  return calls::isend(send_comm, data, bytes, tag, memory, nullptr, request);
}

Result irecv_v9(void* receive_comm, int count, void** data, size_t* bytes, int* tags,
                void** memories, void** request) {
  return calls::irecv(receive_comm, count, data, bytes, tags, memories, nullptr, request);
}

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV9 ncclNetPlugin_v9 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::init_v9,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV9>,
    .listen = bitrail::plugin::calls::listen_shared,
    .connect = bitrail::plugin::calls::connect_shared,
    .accept = bitrail::plugin::calls::accept,
    .register_memory = bitrail::plugin::calls::register_memory,
    .register_dmabuf = nullptr,
    .deregister_memory = bitrail::plugin::calls::deregister_memory,
    .isend = bitrail::plugin::isend_v9,
    .irecv = bitrail::plugin::irecv_v9,
    .iflush = bitrail::plugin::calls::iflush,
    .test = bitrail::plugin::calls::test,
    .close_send = bitrail::plugin::calls::close_send,
    .close_receive = bitrail::plugin::calls::close_receive,
    .close_listen = bitrail::plugin::calls::close_listen,
    .get_device_memory = nullptr,
    .irecv_consumed = nullptr,
    .make_virtual_device = bitrail::plugin::calls::make_device<bitrail::nccl::VirtualDeviceV9>,
};
