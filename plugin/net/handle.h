// What listen() gives to NCCL for the peer: who made it, and the transport's own handle.
#pragma once

#include "plugin/abi/types.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

// Raised when these bytes or what connections carry under NCCL changes.
constexpr uint16_t kHandleVersion = 1;

// `handle` has room for nccl::kHandleBytes. BITRAIL_ERR_INTERNAL when the transport's handle is
// longer than what is left.
Status encode_handle(const transport::Handle& inner, uint64_t comm_id, void* handle);
// These bytes come from the network. BITRAIL_ERR_PROTOCOL when they are not BitRail's (the peer
// runs without the plugin) or another version's, BITRAIL_ERR_JOB_ID when another communicator's.
Status decode_handle(const void* handle, uint64_t comm_id, transport::Handle* inner);

}  // namespace bitrail::plugin
