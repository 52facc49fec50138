// The table ncclNetPlugin_v8. NCCL 2.20 and later: registrations take size_t.
#pragma once

#include "plugin/abi/properties.h"

namespace bitrail::nccl {

struct NetV8 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV8* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, NetDeviceHandle** device_handle);
  Result (*accept)(void* listen_comm, void** receive_comm, NetDeviceHandle** device_handle);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
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
static_assert(sizeof(NetV8) == 19 * 8 && offsetof(NetV8, init) == 1 * 8 &&
              offsetof(NetV8, devices) == 2 * 8 && offsetof(NetV8, get_properties) == 3 * 8 &&
              offsetof(NetV8, listen) == 4 * 8 && offsetof(NetV8, connect) == 5 * 8 &&
              offsetof(NetV8, accept) == 6 * 8 && offsetof(NetV8, register_memory) == 7 * 8 &&
              offsetof(NetV8, register_dmabuf) == 8 * 8 &&
              offsetof(NetV8, deregister_memory) == 9 * 8 && offsetof(NetV8, isend) == 10 * 8 &&
              offsetof(NetV8, irecv) == 11 * 8 && offsetof(NetV8, iflush) == 12 * 8 &&
              offsetof(NetV8, test) == 13 * 8 && offsetof(NetV8, close_send) == 14 * 8 &&
              offsetof(NetV8, close_receive) == 15 * 8 && offsetof(NetV8, close_listen) == 16 * 8 &&
              offsetof(NetV8, get_device_memory) == 17 * 8 &&
              offsetof(NetV8, irecv_consumed) == 18 * 8);

}  // namespace bitrail::nccl
