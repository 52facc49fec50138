// The table ncclNetPlugin_v11. NCCL 2.28 and later: a context for each communicator.
#pragma once

#include "plugin/abi/properties.h"

namespace bitrail::nccl {

struct NetV11 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, CommConfig* config, Logger logger,
                 ProfilerCallback profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV11* properties);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  Result (*connect)(void* context, int device, void* handle, void** send_comm,
                    NetDeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, NetDeviceHandle** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dmabuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                            void** memory);  // may be null
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                  void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, size_t* bytes, int* tags,
                  void** memories, void** parents, void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* bytes, void** memories,
                   void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*close_send)(void* send_comm);
  Result (*close_receive)(void* receive_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);  // may be null
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);       // may be null
  Result (*make_virtual_device)(int* device, VirtualDeviceV9* parts);           // may be null
  Result (*finalize)(void* context);
  Result (*set_attributes)(void* context, NetAttributes* attributes);  // may be null
};
static_assert(sizeof(NetV11) == 22 * 8 && offsetof(NetV11, init) == 1 * 8 &&
              offsetof(NetV11, devices) == 2 * 8 && offsetof(NetV11, get_properties) == 3 * 8 &&
              offsetof(NetV11, listen) == 4 * 8 && offsetof(NetV11, connect) == 5 * 8 &&
              offsetof(NetV11, accept) == 6 * 8 && offsetof(NetV11, register_memory) == 7 * 8 &&
              offsetof(NetV11, register_dmabuf) == 8 * 8 &&
              offsetof(NetV11, deregister_memory) == 9 * 8 && offsetof(NetV11, isend) == 10 * 8 &&
              offsetof(NetV11, irecv) == 11 * 8 && offsetof(NetV11, iflush) == 12 * 8 &&
              offsetof(NetV11, test) == 13 * 8 && offsetof(NetV11, close_send) == 14 * 8 &&
              offsetof(NetV11, close_receive) == 15 * 8 &&
              offsetof(NetV11, close_listen) == 16 * 8 &&
              offsetof(NetV11, get_device_memory) == 17 * 8 &&
              offsetof(NetV11, irecv_consumed) == 18 * 8 &&
              offsetof(NetV11, make_virtual_device) == 19 * 8 &&
              offsetof(NetV11, finalize) == 20 * 8 && offsetof(NetV11, set_attributes) == 21 * 8);

}  // namespace bitrail::nccl
