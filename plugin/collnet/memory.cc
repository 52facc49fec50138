// regMr, deregMr. The library registers with the network itself; what counts here is whose memory
// it is.
#include <algorithm>

#include "plugin/collnet/comm.h"
#include "plugin/collnet/core.h"
#include "plugin/common/mapped.h"
#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {
namespace {

// NCCL registers its own buffers first, once for each channel and direction.
bool is_staging(Comm* comm, const std::byte* data, size_t bytes) {
  if (comm->staging == nullptr) {
    comm->staging = data;
    comm->staging_bytes = bytes;
  }
  return comm->staging == data && comm->staging_bytes == bytes;
}

bool in_flight(const Comm& comm, const Memory* memory) {
  return std::any_of(std::begin(comm.requests), std::end(comm.requests),
                     [memory](const Request& request) {
                       return request.memory[0] == memory || request.memory[1] == memory;
                     });
}

// Errors belong to memory that somebody still registers.
void drop_states(Comm* comm, const Memory& gone) {
  const bool covered = std::any_of(comm->memory.begin(), comm->memory.end(), [&](const auto& left) {
    return left->data <= gone.data && gone.data + gone.bytes <= left->data + left->bytes;
  });
  if (covered) return;
  const size_t dropped = comm->states.drop(gone.data, gone.bytes);
  if (dropped > 0) {
    info("deregMr", "the 1-bit errors of {} range(s) went with their registration", dropped);
  }
}

}  // namespace

nccl::Result register_memory(void* pointer, void* data, size_t bytes, int type, void** memory) {
  constexpr const char* kCall = "regMr";
  if (memory == nullptr) return refuse(kCall, "no place for the result");
  *memory = nullptr;
  Comm* comm = as(pointer, Kind::joined);
  if (comm == nullptr) return refuse(kCall, "the comm is NULL or closed");
  if (type != nccl::kPointerHost) {
    return refuse(kCall, "memory of type {}: CollNet reduces host memory only", type);
  }
  if (data == nullptr || bytes == 0 || !mapped(data, bytes)) {
    return refuse(kCall, "{} bytes at {}: not mapped in this process", bytes, data);
  }
  auto made = std::make_unique<Memory>();
  made->comm = comm;
  made->data = static_cast<std::byte*>(data);
  made->bytes = bytes;
  const std::lock_guard lock(comm->mutex);
  made->staging = is_staging(comm, made->data, bytes);
  *memory = made.get();
  comm->memory.push_back(std::move(made));
  return nccl::kSuccess;
}

nccl::Result deregister_memory(void* pointer, void* memory) {
  constexpr const char* kCall = "deregMr";
  Comm* comm = as(pointer, Kind::joined);
  if (comm == nullptr) return refuse(kCall, "the comm is NULL or closed");
  const std::lock_guard lock(comm->mutex);
  const Memory* known = find_memory(comm, memory);
  if (known == nullptr) return refuse(kCall, "not a registration of this communicator");
  if (in_flight(*comm, known)) return refuse(kCall, "a call that uses this memory is in flight");
  const Memory gone = *known;
  std::erase_if(comm->memory, [known](const auto& entry) { return entry.get() == known; });
  if (!gone.staging) drop_states(comm, gone);
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin::collnet
