// Registered memory: a cache of registrations for each port, and the Memory that callers hold.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/device.h"

namespace bitrail::transport::verbs {

// Page-aligned registrations of one port, reference counted. A range inside a kept one is served
// by it (ordered by address, interval lookup); those that nobody uses stay until the bound is
// reached, the least recently used go first.
class RegistrationCache {
 public:
  RegistrationCache(Port* port, const IbOptions& options);
  ~RegistrationCache();

  // Fails with size, memlock limit and how to raise it.
  Status acquire(void* data, size_t bytes, ibv_mr** mr);
  void release(ibv_mr* mr);
  size_t kept() const;  // registrations there are
  size_t in_use() const;
  // For memory that is about to be unmapped: unused registrations that overlap it end.
  void forget(void* data, size_t bytes);
};

// One range at every port of a context.
class VerbsMemory : public Memory {
 public:
  static Status create(const std::vector<std::shared_ptr<Port>>& ports, void* data, size_t bytes,
                       MemoryType type, std::unique_ptr<Memory>* memory);
  ~VerbsMemory() override;
  // Of ports[index]: valid for data..data+bytes.
  uint32_t lkey(size_t port) const;
  uint32_t rkey(size_t port) const;
  bool covers(const void* data, size_t bytes) const;
};

}  // namespace bitrail::transport::verbs
