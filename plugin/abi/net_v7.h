// The table ncclNetPlugin_v7. NCCL 2.19 and later: handles for device offload.
#pragma once

#include "plugin/abi/properties.h"

namespace bitrail::nccl {

struct NetV7 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV7* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, NetDeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, NetDeviceHandle** device_handle);
  Result (*register_memory)(void* comm, void* data, int bytes, int type, void** memory);
  Result (*register_dmabuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                            void** memory);  // may be null
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*isend)(void* send_comm, void* data, int bytes, int tag, void* memory, void** request);
  Result (*irecv)(void* receive_comm, int count, void** data, int* bytes, int* tags,
                  void** memories, void** request);
  Result (*iflush)(void* receive_comm, int count, void** data, int* bytes, void** memories,
                   void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*close_send)(void* send_comm);
  Result (*close_receive)(void* receive_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*get_device_memory)(void* comm, void* memory, void** device_memory);  // may be null
  Result (*irecv_consumed)(void* receive_comm, int count, void* request);       // may be null
};
static_assert(sizeof(NetV7) == 19 * 8 && offsetof(NetV7, init) == 1 * 8 &&
              offsetof(NetV7, devices) == 2 * 8 && offsetof(NetV7, get_properties) == 3 * 8 &&
              offsetof(NetV7, listen) == 4 * 8 && offsetof(NetV7, connect) == 5 * 8 &&
              offsetof(NetV7, accept) == 6 * 8 && offsetof(NetV7, register_memory) == 7 * 8 &&
              offsetof(NetV7, register_dmabuf) == 8 * 8 &&
              offsetof(NetV7, deregister_memory) == 9 * 8 && offsetof(NetV7, isend) == 10 * 8 &&
              offsetof(NetV7, irecv) == 11 * 8 && offsetof(NetV7, iflush) == 12 * 8 &&
              offsetof(NetV7, test) == 13 * 8 && offsetof(NetV7, close_send) == 14 * 8 &&
              offsetof(NetV7, close_receive) == 15 * 8 && offsetof(NetV7, close_listen) == 16 * 8 &&
              offsetof(NetV7, get_device_memory) == 17 * 8 &&
              offsetof(NetV7, irecv_consumed) == 18 * 8);

}  // namespace bitrail::nccl
