#include "plugin/collnet/calls_in_flight.h"

#include "plugin/collnet/core.h"
#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {

Status open_call(void* pointer, void** result, Comm** comm) {
  if (result == nullptr) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "no place for the request");
  }
  *result = nullptr;
  *comm = as(pointer, Kind::joined);
  if (*comm != nullptr) return {};
  return Status(BITRAIL_ERR_INVALID_ARGUMENT, "the comm is NULL or closed");
}

Status reduction_of(const Comm& comm, int type, int reduction, bitrail_type_t* ours,
                    bitrail_op_t* operation) {
  if (supports(comm.mode, type, reduction, ours, operation)) return {};
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "type {} with operation {}: reduceSupport says no",
                 type, reduction);
}

Status check_buffer(const Comm& comm, const Buffer& buffer, const Memory** found) {
  *found = nullptr;
  if (buffer.data == nullptr && buffer.bytes > 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} bytes at NULL", buffer.bytes);
  }
  if (buffer.memory == nullptr) return {};
  const Memory* memory = find_memory(&comm, buffer.memory);
  if (memory == nullptr) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT,
                  "the memory is not registered with this communicator");
  }
  const auto* data = static_cast<const std::byte*>(buffer.data);
  const bool inside = data >= memory->data && data <= memory->data + memory->bytes &&
                      buffer.bytes <= static_cast<size_t>(memory->data + memory->bytes - data);
  if (!inside) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} bytes at {} leave the registered memory",
                   buffer.bytes, buffer.data);
  }
  *found = memory;
  return {};
}

Status begin_call(Comm* comm, const Buffer& send, const Buffer& receive, Request** request) {
  *request = nullptr;
  const Memory* memory[2] = {};
  BITRAIL_TRY(check_buffer(*comm, send, &memory[0]));
  BITRAIL_TRY(check_buffer(*comm, receive, &memory[1]));
  if (comm->compressing != nullptr) return {};
  Request* taken = take_request(comm);
  if (taken == nullptr) return {};
  taken->bytes = receive.bytes;
  taken->memory[0] = memory[0];
  taken->memory[1] = memory[1];
  *request = taken;
  return {};
}

nccl::Result end_call(const char* name, Status begun, Request* request, void** result) {
  if (!begun.ok() && request->parts.size() < 2) {
    give_back(request);
    return report(name, begun);
  }
  request->failed = std::move(begun);
  *result = request;
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin::collnet
