// The table ncclCollNetPlugin_v11. NCCL 2.28 and later: a context for each communicator.
#pragma once

#include "plugin/abi/collnet_types.h"

namespace bitrail::nccl {

struct CollNetV11 {
  const char* name;
  Result (*init)(void** context, uint64_t comm_id, Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV11* properties);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  Result (*connect)(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm);
  Result (*reduce_support)(DataType type, Reduction reduction, int* supported);
  Result (*register_memory)(void* comm, void* data, size_t bytes, int type, void** memory);
  Result (*register_dmabuf)(void* comm, void* data, size_t bytes, int type, uint64_t offset, int fd,
                            void** memory);
  Result (*deregister_memory)(void* comm, void* memory);
  Result (*iallreduce)(void* comm, void* send, void* receive, size_t count, DataType type,
                       Reduction reduction, void* send_memory, void* receive_memory,
                       void** request);
  Result (*iallgather)(void* comm, void* send, int parts, PartV9* receive, size_t bytes_per_rank,
                       size_t window_offset, size_t window_bytes, void* send_memory,
                       void** request);
  Result (*ireduce_scatter)(void* comm, int parts, PartV9* send, void* receive,
                            size_t bytes_per_rank, size_t window_offset, size_t window_bytes,
                            DataType type, Reduction reduction, void* receive_memory,
                            void** request);
  Result (*iflush)(void* comm, void* data, int bytes, void* memory, void** request);
  Result (*test)(void* request, int* done, int* bytes);
  Result (*close_coll)(void* coll_comm);
  Result (*close_listen)(void* listen_comm);
  Result (*make_virtual_device)(int* device, VirtualDeviceV9* parts);  // may be null
  Result (*finalize)(void* context);
};
static_assert(sizeof(CollNetV11) == 19 * 8 && offsetof(CollNetV11, init) == 1 * 8 &&
              offsetof(CollNetV11, devices) == 2 * 8 &&
              offsetof(CollNetV11, get_properties) == 3 * 8 &&
              offsetof(CollNetV11, listen) == 4 * 8 && offsetof(CollNetV11, connect) == 5 * 8 &&
              offsetof(CollNetV11, reduce_support) == 6 * 8 &&
              offsetof(CollNetV11, register_memory) == 7 * 8 &&
              offsetof(CollNetV11, register_dmabuf) == 8 * 8 &&
              offsetof(CollNetV11, deregister_memory) == 9 * 8 &&
              offsetof(CollNetV11, iallreduce) == 10 * 8 &&
              offsetof(CollNetV11, iallgather) == 11 * 8 &&
              offsetof(CollNetV11, ireduce_scatter) == 12 * 8 &&
              offsetof(CollNetV11, iflush) == 13 * 8 && offsetof(CollNetV11, test) == 14 * 8 &&
              offsetof(CollNetV11, close_coll) == 15 * 8 &&
              offsetof(CollNetV11, close_listen) == 16 * 8 &&
              offsetof(CollNetV11, make_virtual_device) == 17 * 8 &&
              offsetof(CollNetV11, finalize) == 18 * 8);

}  // namespace bitrail::nccl
