#include "plugin/net/memory.h"

#include "plugin/common/mapped.h"
#include "plugin/log/log.h"
#include "plugin/net/comm.h"
#include "plugin/net/core.h"

namespace bitrail::plugin {
namespace {

Status check(const Comm& comm, void* data, size_t bytes, int type) {
  if (type != nccl::kPointerHost && type != nccl::kPointerCuda) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "memory of type {}: neither host nor CUDA", type);
  }
  const Device* found = device(comm.device);
  if (found == nullptr || (pointer_support(found->properties) & type) == 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "this device does not take CUDA memory");
  }
  if (data == nullptr) return failure(BITRAIL_ERR_INVALID_ARGUMENT, "the address is NULL");
  if (type == nccl::kPointerHost && bytes > 0 && !mapped(data, bytes)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} bytes at {}: not mapped in this process",
                   bytes, data);
  }
  return {};
}

Comm* open(void* pointer) {
  auto* comm = static_cast<Comm*>(pointer);
  const bool good = comm != nullptr && comm->kind.load(std::memory_order_acquire) != Kind::closed;
  return good ? comm : nullptr;
}

}  // namespace

nccl::Result register_memory(void* pointer, void* data, size_t bytes, int type, void** memory) {
  constexpr const char* kCall = "regMr";
  if (memory == nullptr) return refuse(kCall, "no place for the result");
  *memory = nullptr;
  Comm* comm = open(pointer);
  if (comm == nullptr) return refuse(kCall, "the comm is NULL or closed");
  Status status = check(*comm, data, bytes, type);
  if (!status.ok()) return report(kCall, status);
  auto made = std::make_unique<Registration>();
  made->domain = comm->domain;
  {
    const std::lock_guard lock(comm->domain->mutex);
    status = comm->domain->context->register_memory(
        data, bytes, static_cast<transport::MemoryType>(type), &made->memory);
  }
  if (!status.ok()) return report(kCall, status);
  Instance* instance = comm->domain->instance;
  const std::lock_guard lock(instance->mutex);
  comm->domain->users++;
  instance->registrations.insert(made.get());
  *memory = made.release();
  return nccl::kSuccess;
}

nccl::Result deregister_memory(void* pointer, void* memory) {
  constexpr const char* kCall = "deregMr";
  Comm* comm = open(pointer);
  if (comm == nullptr) return refuse(kCall, "the comm is NULL or closed");
  auto* registration = static_cast<Registration*>(memory);
  Instance* instance = comm->domain->instance;
  bool known = false;
  {
    const std::lock_guard lock(instance->mutex);
    known = instance->registrations.contains(registration);
  }
  if (!known) return refuse(kCall, "not a registration of this communicator");
  deregister(registration);
  return nccl::kSuccess;
}

void deregister(Registration* registration) {
  Domain* domain = registration->domain;
  {
    const std::lock_guard lock(domain->instance->mutex);
    domain->instance->registrations.erase(registration);
  }
  {
    const std::lock_guard lock(domain->mutex);
    delete registration;
  }
  release_domain(domain);
}

}  // namespace bitrail::plugin
