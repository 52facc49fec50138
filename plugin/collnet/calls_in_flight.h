// The beginning of every call on a joined comm: its buffers, its request.
#pragma once

#include "plugin/collnet/comm.h"

namespace bitrail::plugin::collnet {

struct Buffer {
  const void* data;
  size_t bytes;
  const void* memory;  // NCCL's mhandle; may be null
};

// Before the comm's mutex is taken. BITRAIL_ERR_INVALID_ARGUMENT: no place for the request, which
// is null otherwise, or `pointer` is no joined comm; what the comm does not reduce.
Status open_call(void* pointer, void** result, Comm** comm);
Status reduction_of(const Comm& comm, int type, int reduction, bitrail_type_t* ours,
                    bitrail_op_t* operation);

// All with it held.

// BITRAIL_ERR_INVALID_ARGUMENT for memory that is not registered with this comm, or a buffer that
// leaves it. *found is null for a buffer without registration.
Status check_buffer(const Comm& comm, const Buffer& buffer, const Memory** found);
inline bool is_users(const Memory* memory) { return memory != nullptr && !memory->staging; }

// Checks both and takes a request; null when there is none now.
Status begin_call(Comm* comm, const Buffer& send, const Buffer& receive, Request** request);
// Gives the request to NCCL, or gives it back and writes why. What failed behind the first part of
// a call is told by test().
nccl::Result end_call(const char* name, Status begun, Request* request, void** result);

}  // namespace bitrail::plugin::collnet
