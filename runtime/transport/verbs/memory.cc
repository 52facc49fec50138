#include "runtime/transport/verbs/memory.h"

#include <cerrno>

#include "runtime/transport/verbs/errors.h"

namespace bitrail::transport::verbs {

VerbsMemory::VerbsMemory(void* data, size_t bytes, bool cached)
    : start_(reinterpret_cast<uint64_t>(data)), bytes_(bytes), cached_(cached) {}

Status VerbsMemory::create(const std::vector<std::shared_ptr<Port>>& ports, void* data,
                           size_t bytes, MemoryType type, std::unique_ptr<Memory>* memory) {
  if (type == kDmaBuf) {
    return failure(BITRAIL_ERR_UNSUPPORTED,
                   "transport verbs registers a DMA-BUF by its descriptor, not by its address");
  }
  std::unique_ptr<VerbsMemory> made(new VerbsMemory(data, bytes, true));
  for (const std::shared_ptr<Port>& port : ports) {
    if ((port->properties.memory_types & type) == 0) {
      return failure(BITRAIL_ERR_UNSUPPORTED,
                     "{} does not reach device memory; load nvidia_peermem, or use DMA-BUF or host "
                     "buffers",
                     port->name);
    }
    ibv_mr* mr = nullptr;
    BITRAIL_TRY(port->registrations->acquire(data, bytes, &mr));
    made->parts_.push_back({port, mr});
  }
  *memory = std::move(made);
  return {};
}

Status VerbsMemory::create_dmabuf(const std::vector<std::shared_ptr<Port>>& ports, int fd,
                                  uint64_t offset, void* data, size_t bytes,
                                  std::unique_ptr<Memory>* memory) {
  if (fd < 0 || bytes == 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "a DMA-BUF of descriptor {} and {} bytes", fd,
                   bytes);
  }
  std::unique_ptr<VerbsMemory> made(new VerbsMemory(data, bytes, false));
  for (const std::shared_ptr<Port>& port : ports) {
    ibv_mr* mr = nullptr;
    if (table().reg_dmabuf_mr != nullptr) {
      mr = table().reg_dmabuf_mr(
          port->pd, offset, bytes, made->start_, fd,
          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    } else {
      errno = EOPNOTSUPP;
    }
    if (mr == nullptr) {
      const int error = errno;
      const bool absent = error == EOPNOTSUPP || error == EPROTONOSUPPORT;
      return failure(absent ? BITRAIL_ERR_UNSUPPORTED : BITRAIL_ERR_SYSTEM,
                     "{} cannot register a DMA-BUF of {} bytes: {}", port->name, bytes,
                     errno_text("ibv_reg_dmabuf_mr", error));
    }
    made->parts_.push_back({port, mr});
  }
  *memory = std::move(made);
  return {};
}

VerbsMemory::~VerbsMemory() {
  for (const Part& part : parts_) {
    if (cached_) {
      part.port->registrations->release(part.mr);
    } else {
      table().dereg_mr(part.mr);
    }
  }
}

uint32_t VerbsMemory::lkey(size_t port) const {
  const ibv_mr* mr = parts_[port].mr;
  return mr == nullptr ? 0 : mr->lkey;
}

uint32_t VerbsMemory::rkey(size_t port) const {
  const ibv_mr* mr = parts_[port].mr;
  return mr == nullptr ? 0 : mr->rkey;
}

bool VerbsMemory::covers(const void* data, size_t bytes) const {
  const auto address = reinterpret_cast<uint64_t>(data);
  return bytes == 0 || (address >= start_ && bytes <= bytes_ && address - start_ <= bytes_ - bytes);
}

}  // namespace bitrail::transport::verbs
