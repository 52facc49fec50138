// The table ncclNetPlugin_v6. NCCL 2.17 and later: tags, grouped receives, DMA-BUF registrations;
// int sizes.
#pragma once

#include "plugin/abi/properties.h"

namespace bitrail::nccl {

struct NetV6 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV6* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm);
  Result (*accept)(void* listen_comm, void** receive_comm);
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
};
static_assert(sizeof(NetV6) == 17 * 8 && offsetof(NetV6, init) == 1 * 8 &&
              offsetof(NetV6, devices) == 2 * 8 && offsetof(NetV6, get_properties) == 3 * 8 &&
              offsetof(NetV6, listen) == 4 * 8 && offsetof(NetV6, connect) == 5 * 8 &&
              offsetof(NetV6, accept) == 6 * 8 && offsetof(NetV6, register_memory) == 7 * 8 &&
              offsetof(NetV6, register_dmabuf) == 8 * 8 &&
              offsetof(NetV6, deregister_memory) == 9 * 8 && offsetof(NetV6, isend) == 10 * 8 &&
              offsetof(NetV6, irecv) == 11 * 8 && offsetof(NetV6, iflush) == 12 * 8 &&
              offsetof(NetV6, test) == 13 * 8 && offsetof(NetV6, close_send) == 14 * 8 &&
              offsetof(NetV6, close_receive) == 15 * 8 && offsetof(NetV6, close_listen) == 16 * 8);

}  // namespace bitrail::nccl
