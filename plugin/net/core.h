// The net plugin as plain functions over the transport, sized and typed as in the newest table.
// Each writes one line through NCCL's logger when it fails, and never throws.
#pragma once

#include "plugin/abi/properties.h"
#include "plugin/net/devices.h"
#include "plugin/net/instance.h"

namespace bitrail::plugin {

inline constexpr const char* kName = "BitRail";

nccl::Result get_devices(int* count);
nccl::Result get_properties(int index, nccl::PropertiesV12* properties);

// A device of up to 4 others; the transport has to be able to.
nccl::Result make_device(const int* parts, int count, int* index);

nccl::Result listen(Instance* instance, int device, void* handle, void** listen_comm);
// Polled: success with a null comm means "call again".
nccl::Result connect(Instance* instance, int device, void* handle, void** send_comm);
nccl::Result accept(void* listen_comm, void** receive_comm);
nccl::Result close(void* comm, bool listener, bool sender);

nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory);
nccl::Result deregister_memory(void* comm, void* memory);

// Success with a null request means "no room now, call again". `parent` and `parents` are the
// profiler's, and may be null.
nccl::Result isend(void* send_comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                   void** request);
nccl::Result irecv(void* receive_comm, int count, void** data, const size_t* bytes, const int* tags,
                   void** memories, void** parents, void** request);
nccl::Result iflush(void* receive_comm, int count, void** data, const int* bytes, void** memories,
                    void** request);
nccl::Result test(void* request, int* done, int* sizes);

}  // namespace bitrail::plugin
