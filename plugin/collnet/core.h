// CollNet as plain functions over the library's communicators, sized and typed as in the newest
// table. Each writes one line through NCCL's logger when it fails.
#pragma once

#include <bitrail/bitrail.h>

#include "plugin/abi/collnet_types.h"
#include "plugin/collnet/instance.h"

namespace bitrail::plugin::collnet {

// One, the first of the net's; 0 while BITRAIL_COLLNET is off.
nccl::Result get_devices(int* count);
nccl::Result reduce_support(int type, int reduction, int* supported);

nccl::Result listen(Instance* instance, int device, void* handle, void** listen_comm);
// Blocks until all ranks are there or BITRAIL_TIMEOUT_MS has passed.
nccl::Result connect(void* const* handles, int ranks, int rank, void* listen_comm,
                     void** coll_comm);
nccl::Result close(void* comm, bool listener);

nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory);
nccl::Result deregister_memory(void* comm, void* memory);

// Success with a null request means "no room now, call again". All ranks call alike.
nccl::Result iallreduce(void* comm, const void* send, void* receive, size_t count, int type,
                        int reduction, void* send_memory, void* receive_memory, void** request);

// Of the ranks' parts laid one after the other, bytes [offset, offset + bytes): gathered into one
// place, or reduced there with each rank getting what is of its part. `mine` is where this rank's
// share of the window begins.
struct Window {
  size_t bytes_per_rank, offset, bytes;
};
nccl::Result iallgather(void* comm, const void* mine, void* receive, void* send_memory,
                        void* receive_memory, const Window& window, void** request);
nccl::Result ireduce_scatter(void* comm, const void* send, void* mine, void* send_memory,
                             void* receive_memory, const Window& window, int type, int reduction,
                             void** request);
nccl::Result iflush(void* comm, void* data, int bytes, void* memory, void** request);
nccl::Result test(void* request, int* done, int* bytes);

// Does this mode reduce that? Then also what the library calls type and operation.
bool supports(Mode mode, int type, int reduction, bitrail_type_t* ours, bitrail_op_t* operation);

}  // namespace bitrail::plugin::collnet
