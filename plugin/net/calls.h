// The slots that several table versions share, with NCCL's calling convention: what is here may be
// called from C, catches everything and returns a code. What one version alone needs is in its own
// file.
#pragma once

#include <algorithm>
#include <exception>

#include "plugin/log/log.h"
#include "plugin/net/core.h"

namespace bitrail::plugin {

template <typename Call>
nccl::Result guarded(const char* name, Call call) noexcept {
  try {
    return call();
  } catch (const std::exception& error) {
    try {
      return report(name, failure(BITRAIL_ERR_INTERNAL, "{}", error.what()));
    } catch (...) {
      return nccl::kInternalError;
    }
  }
}

namespace calls {

// No memory of devices: the plugin works on the host.
inline void no_device_handle(nccl::NetDeviceHandle** handle) {
  if (handle != nullptr) *handle = nullptr;
}

// All versions.
nccl::Result devices(int* count);
nccl::Result deregister_memory(void* comm, void* memory);
nccl::Result iflush(void* receive_comm, int count, void** data, int* bytes, void** memories,
                    void** request);
nccl::Result test(void* request, int* done, int* sizes);
nccl::Result close_send(void* send_comm);
nccl::Result close_receive(void* receive_comm);
nccl::Result close_listen(void* listen_comm);

// To version 10: the process's context.
nccl::Result init_shared(nccl::Logger logger, nccl::ProfilerCallback profiler);
nccl::Result listen_shared(int device, void* handle, void** listen_comm);
nccl::Result connect_shared(int device, void* handle, void** send_comm,
                            nccl::NetDeviceHandle** device_handle);
// From version 11: the communicator's.
nccl::Result init(void** context, uint64_t comm_id, nccl::CommConfig* config, nccl::Logger logger,
                  nccl::ProfilerCallback profiler);
nccl::Result listen(void* context, int device, void* handle, void** listen_comm);
nccl::Result connect(void* context, int device, void* handle, void** send_comm,
                     nccl::NetDeviceHandle** device_handle);
nccl::Result finalize(void* context);

// From version 7.
nccl::Result accept(void* listen_comm, void** receive_comm, nccl::NetDeviceHandle** device_handle);
// From version 8; before, sizes are int.
nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory);
// From version 10; before, there is no profiler; before version 9, sizes are int.
nccl::Result isend(void* send_comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                   void** request);
nccl::Result irecv(void* receive_comm, int count, void** data, size_t* bytes, int* tags,
                   void** memories, void** parents, void** request);

// From version 9.
template <typename VirtualDevice>
nccl::Result make_device(int* device, VirtualDevice* parts) {
  return guarded("makeVDevice", [&] {
    return plugin::make_device(parts == nullptr ? nullptr : parts->devices,
                               parts == nullptr ? 0 : parts->count, device);
  });
}

// Versions 6 to 8.
nccl::Result register_memory_int(void* comm, void* data, int bytes, int type, void** memory);
nccl::Result isend_int(void* send_comm, void* data, int bytes, int tag, void* memory,
                       void** request);
nccl::Result irecv_int(void* receive_comm, int count, void** data, int* bytes, int* tags,
                       void** memories, void** request);

// Copies the members that `Properties` has.
template <typename Properties>
nccl::Result get_properties(int device, Properties* properties) {
  return guarded("getProperties", [&] {
    nccl::PropertiesV12 all;
    const nccl::Result result =
        plugin::get_properties(device, properties == nullptr ? nullptr : &all);
    if (result != nccl::kSuccess) return result;
    *properties = {};
    properties->name = all.name;
    properties->pci_path = all.pci_path;
    properties->guid = all.guid;
    properties->pointer_support = all.pointer_support;
    properties->speed_mbps = all.speed_mbps;
    properties->port = all.port;
    properties->latency_us = all.latency_us;
    properties->max_comms = all.max_comms;
    properties->max_receives = all.max_receives;
    if constexpr (requires { properties->device_type; }) {
      properties->device_type = all.device_type;
      properties->device_version = all.device_version;
    }
    if constexpr (requires { properties->registration_is_global; }) {
      properties->registration_is_global = all.registration_is_global;
    }
    if constexpr (requires { properties->virtual_device; }) {
      properties->force_flush = all.force_flush;
      properties->virtual_device.count = all.virtual_device.count;
      std::copy_n(all.virtual_device.devices, all.virtual_device.count,
                  properties->virtual_device.devices);
      properties->max_p2p_bytes = all.max_p2p_bytes;
      properties->max_collective_bytes = all.max_collective_bytes;
    }
    if constexpr (requires { properties->max_multi_request; }) {
      properties->max_multi_request = all.max_multi_request;
    }
    if constexpr (requires { properties->rail_id; }) {
      properties->rail_id = all.rail_id;
      properties->plane_id = all.plane_id;
    }
    return nccl::kSuccess;
  });
}

}  // namespace calls
}  // namespace bitrail::plugin
