// Room for UCX's files. Where a process has none left, UCX 1.13 ends it (assertions in thread.c and
// ucp_worker.c) or leaves a thread behind, so that is looked at before it is asked for anything.
#pragma once

#include "runtime/common/status.h"

namespace bitrail::transport::ucx {

// A worker has about 10 over TCP and shared memory, and some for each RDMA device; an endpoint has
// a connection in each direction.
inline constexpr int kWorkerFiles = 32, kEndpointFiles = 12;

// Ok: this process can open `count` files now. Otherwise the text says what to raise.
Status require_files(int count);

}  // namespace bitrail::transport::ucx
