// A loaded plugin as the driver sees it: one interface for all table versions, in the newest form.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugin/abi/properties.h"

namespace bitrail::test {

using Handle = std::array<uint8_t, nccl::kHandleBytes>;

class Net {
 public:
  virtual ~Net() = default;
  virtual int version() const = 0;
  virtual const char* name() const = 0;
  // Tables without contexts give null.
  virtual nccl::Result init(void** context, uint64_t comm_id) = 0;
  virtual nccl::Result finalize(void* context) = 0;
  virtual nccl::Result devices(int* count) = 0;
  virtual nccl::Result get_properties(int device, nccl::PropertiesV12* properties) = 0;
  // kInvalidUsage for tables without (before version 9).
  virtual nccl::Result make_device(int* device, nccl::VirtualDeviceV12* parts) = 0;
  virtual nccl::Result listen(void* context, int device, void* handle, void** comm) = 0;
  virtual nccl::Result connect(void* context, int device, void* handle, void** comm) = 0;
  virtual nccl::Result accept(void* listen_comm, void** comm) = 0;
  virtual nccl::Result register_memory(void* comm, void* data, size_t bytes, int type,
                                       void** memory) = 0;
  virtual nccl::Result deregister_memory(void* comm, void* memory) = 0;
  virtual nccl::Result isend(void* comm, void* data, size_t bytes, int tag, void* memory,
                             void* parent, void** request) = 0;
  virtual nccl::Result irecv(void* comm, int count, void** data, size_t* bytes, int* tags,
                             void** memories, void** parents, void** request) = 0;
  virtual nccl::Result iflush(void* comm, int count, void** data, int* bytes, void** memories,
                              void** request) = 0;
  virtual nccl::Result test(void* request, int* done, int* sizes) = 0;
  virtual nccl::Result close_send(void* comm) = 0;
  virtual nccl::Result close_receive(void* comm) = 0;
  virtual nccl::Result close_listen(void* comm) = 0;
};

constexpr int kOldest = 6, kNewest = 12;

// Loads FILE as NCCL does (RTLD_NOW, RTLD_LOCAL). Null and a text on stderr when there is no such
// table.
class File {
 public:
  explicit File(const std::string& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  bool loaded() const { return handle_ != nullptr; }
  std::unique_ptr<Net> net(int version) const;

 private:
  void* handle_;
};

// What the plugin wrote through the logger that init() is given, since the last call: warnings
// only.
std::vector<std::string> take_warnings();
// Started and stopped profiler events.
struct Events {
  int started, stopped;
};
Events profiler_events();

}  // namespace bitrail::test
