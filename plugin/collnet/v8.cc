// Version 8: int counts.
#include "plugin/abi/collnet_v8.h"

#include "plugin/collnet/calls.h"
#include "plugin/exports/exports.h"

namespace bitrail::plugin::collnet {
namespace {

using nccl::Result;

Result iallreduce_v8(void* comm, void* send, void* receive, int count, nccl::DataType type,
                     nccl::Reduction reduction, void* send_memory, void* receive_memory,
                     void** request) {
  if (request != nullptr) *request = nullptr;
  return guarded("iallreduce", [&] {
    if (count < 0) return refuse("iallreduce", "{} elements", count);
    return collnet::iallreduce(comm, send, receive, static_cast<size_t>(count), type, reduction,
                               send_memory, receive_memory, request);
  });
}

}  // namespace
}  // namespace bitrail::plugin::collnet

BITRAIL_PLUGIN_TABLE const bitrail::nccl::CollNetV8 ncclCollNetPlugin_v8 = {
    .name = bitrail::plugin::kName,
    .init = bitrail::plugin::collnet::calls::init_shared,
    .devices = bitrail::plugin::collnet::calls::devices,
    .get_properties = bitrail::plugin::collnet::calls::get_properties<bitrail::nccl::PropertiesV8>,
    .listen = bitrail::plugin::collnet::calls::listen_shared,
    .connect = bitrail::plugin::collnet::calls::connect,
    .reduce_support = bitrail::plugin::collnet::calls::reduce_support,
    .register_memory = bitrail::plugin::collnet::calls::register_memory,
    .register_dmabuf = nullptr,
    .deregister_memory = bitrail::plugin::collnet::calls::deregister_memory,
    .iallreduce = bitrail::plugin::collnet::iallreduce_v8,
    .iallgather = bitrail::plugin::collnet::calls::iallgather<bitrail::nccl::PartV8>,
    .ireduce_scatter = bitrail::plugin::collnet::calls::ireduce_scatter<bitrail::nccl::PartV8>,
    .iflush = bitrail::plugin::collnet::calls::iflush,
    .test = bitrail::plugin::collnet::calls::test,
    .close_coll = bitrail::plugin::collnet::calls::close_coll,
    .close_listen = bitrail::plugin::collnet::calls::close_listen,
};
