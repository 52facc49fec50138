// The slots that several CollNet table versions share, with NCCL's calling convention: what is here
// may be called from C, catches everything and returns a code. What one version alone needs is in
// its own file.
#pragma once

#include "plugin/collnet/core.h"
#include "plugin/net/calls.h"

namespace bitrail::plugin::collnet::calls {

// All versions.
nccl::Result devices(int* count);
nccl::Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm);
nccl::Result reduce_support(nccl::DataType type, nccl::Reduction reduction, int* supported);
nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory);
nccl::Result deregister_memory(void* comm, void* memory);
nccl::Result iflush(void* comm, void* data, int bytes, void* memory, void** request);
nccl::Result test(void* request, int* done, int* bytes);
nccl::Result close_coll(void* coll_comm);
nccl::Result close_listen(void* listen_comm);

// To version 10: the process's context.
nccl::Result init_shared(nccl::Logger logger);
nccl::Result listen_shared(int device, void* handle, void** listen_comm);

// From version 9; before, counts are int.
nccl::Result iallreduce(void* comm, void* send, void* receive, size_t count, nccl::DataType type,
                        nccl::Reduction reduction, void* send_memory, void* receive_memory,
                        void** request);

// The device is the net's, less what CollNet cannot do.
template <typename Properties>
nccl::Result get_properties(int device, Properties* properties) {
  return guarded("getProperties", [&] {
    int count = 0;
    (void)get_devices(&count);
    if (device < 0 || device >= count || properties == nullptr) {
      return refuse("getProperties", "device {} of {}", device, count);
    }
    const nccl::Result result = plugin::calls::get_properties(device, properties);
    if (result != nccl::kSuccess) return result;
    properties->pointer_support = nccl::kPointerHost;
    properties->registration_is_global = 0;
    properties->max_receives = 1;
    if constexpr (requires { properties->max_collective_bytes; }) {
      properties->max_collective_bytes = nccl::kMaxCollectiveBytes;
    }
    return nccl::kSuccess;
  });
}

// Part is NCCL's of the version; there is always one.
template <typename Part>
nccl::Result iallgather(void* comm, void* send, int parts, Part* receive, size_t bytes_per_rank,
                        size_t window_offset, size_t window_bytes, void* send_memory,
                        void** request) {
  if (request != nullptr) *request = nullptr;
  return guarded("iallgather", [&] {
    if (parts != 1 || receive == nullptr || receive->bytes != window_bytes) {
      return refuse("iallgather", "{} parts: one, as long as the window, is what there may be",
                    parts);
    }
    return collnet::iallgather(comm, send, receive->address, send_memory, receive->memory,
                               {bytes_per_rank, window_offset, window_bytes}, request);
  });
}

template <typename Part>
nccl::Result ireduce_scatter(void* comm, int parts, Part* send, void* receive,
                             size_t bytes_per_rank, size_t window_offset, size_t window_bytes,
                             nccl::DataType type, nccl::Reduction reduction, void* receive_memory,
                             void** request) {
  if (request != nullptr) *request = nullptr;
  return guarded("ireducescatter", [&] {
    if (parts != 1 || send == nullptr || send->bytes != window_bytes) {
      return refuse("ireducescatter", "{} parts: one, as long as the window, is what there may be",
                    parts);
    }
    return collnet::ireduce_scatter(comm, send->address, receive, send->memory, receive_memory,
                                    {bytes_per_rank, window_offset, window_bytes}, type, reduction,
                                    request);
  });
}

}  // namespace bitrail::plugin::collnet::calls
