// Registered memory: a cache of registrations for each port, and the Memory that callers hold.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/device.h"

namespace bitrail::transport::verbs {

// What the owner of the memory promises about the time after release().
enum class Keep {
  no,     // nothing: it may be unmapped at once
  unused  // forget() comes before it is unmapped
};

// Page-aligned registrations of one port, reference counted, for any threads. A range inside a kept
// one is served by it (ordered by address, interval lookup).
//
// A registration pins pages, not addresses: once memory was unmapped and something else mapped in
// its place, the old registration still reaches the old pages, silently. So a registration ends
// with its last user, unless one of them promised for the whole of it to call forget() in time
// (Keep::unused). Such ones stay until the bound is reached, the least recently used go first.
// Memory must stay mapped while it is in use: until Memory is destroyed, or the request is done.
class RegistrationCache {
 public:
  RegistrationCache(Port* port, const IbOptions& options);
  ~RegistrationCache();
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;

  // Fails with size, memlock limit and how to raise it. No bytes: null, which release() takes.
  // Memory that may only be read is registered for reading: a source of messages.
  Status acquire(void* data, size_t bytes, ibv_mr** mr, Keep keep = Keep::no);
  void release(ibv_mr* mr);
  size_t kept() const;  // registrations there are
  size_t in_use() const;
  // For memory that is about to be unmapped: unused registrations that overlap it end. Used ones
  // serve nobody new.
  void forget(void* data, size_t bytes);
  bool relaxed_ordering() const;

 private:
  struct Entry {
    ibv_mr* mr = nullptr;
    uint64_t start = 0, end = 0;
    int users = 0;
    bool keep = false;
    bool findable = true;               // in by_start_
    std::list<Entry*>::iterator place;  // in unused_ while users is 0
  };

  Entry* find(uint64_t start, uint64_t end);
  Status add(uint64_t start, uint64_t end, Entry** entry);
  ibv_mr* register_range(uint64_t start, uint64_t end);
  ibv_mr* register_with(uint64_t start, uint64_t end, unsigned access);
  bool evict_half();
  void hide(Entry* entry);
  void drop(Entry* entry);

  Port* port_;
  bool relaxed_ = false;
  size_t bound_;
  mutable std::mutex mutex_;
  // No findable entry is inside another: starts and ends rise together, so that of those that start
  // at or before an address the last one reaches farthest.
  std::map<uint64_t, Entry*> by_start_;
  std::unordered_map<ibv_mr*, std::unique_ptr<Entry>> entries_;
  std::list<Entry*> unused_;  // the least recently used first
};

// One range at every port of a context.
class VerbsMemory : public Memory {
 public:
  static Status create(const std::vector<std::shared_ptr<Port>>& ports, void* data, size_t bytes,
                       MemoryType type, std::unique_ptr<Memory>* memory);
  // Bytes offset.. of the DMA-BUF `fd`, which the device shall know as `data`...
  static Status create_dmabuf(const std::vector<std::shared_ptr<Port>>& ports, int fd,
                              uint64_t offset, void* data, size_t bytes,
                              std::unique_ptr<Memory>* memory);
  ~VerbsMemory() override;
  // Of ports[index]: valid for data..data+bytes.
  uint32_t lkey(size_t port) const;
  uint32_t rkey(size_t port) const;
  bool covers(const void* data, size_t bytes) const;

 private:
  VerbsMemory(void* data, size_t bytes, bool cached);

  struct Part {
    std::shared_ptr<Port> port;
    ibv_mr* mr;
  };
  uint64_t start_;
  size_t bytes_;
  bool cached_;  // by the ports' caches; else ours
  std::vector<Part> parts_;
};

}  // namespace bitrail::transport::verbs
