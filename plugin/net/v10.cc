// Version 10: no contexts; connect carries the traffic class.
#include "plugin/abi/net_v10.h"

#include "plugin/exports/exports.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin {
namespace {

using nccl::Result;

// Of the communicator whose thread this is; what opens a domain next takes it.
void note_traffic_class(const nccl::CommConfig* config) {
  Instance* instance = shared_instance();
  if (config == nullptr || instance == nullptr) return;
  const std::lock_guard lock(instance->mutex);
  instance->traffic_class = config->traffic_class;
}

Result connect_v10(int device, nccl::CommConfig* config, void* handle, void** send_comm,
                   nccl::NetDeviceHandle** device_handle) {
  note_traffic_class(config);
  return calls::connect_shared(device, handle, send_comm, device_handle);
}

}  // namespace
}  // namespace bitrail::plugin

BITRAIL_PLUGIN_TABLE const bitrail::nccl::NetV10 ncclNetPlugin_v10 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::calls::init_shared,
    .devices = bitrail::plugin::calls::devices,
    .get_properties = bitrail::plugin::calls::get_properties<bitrail::nccl::PropertiesV9>,
    .listen = bitrail::plugin::calls::listen_shared,
    .connect = bitrail::plugin::connect_v10,
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
};
