// A loaded plugin's CollNet as the driver sees it: one interface for all table versions, in the
// newest form.
#pragma once

#include <memory>
#include <string>

#include "plugin/abi/collnet_types.h"

namespace bitrail::test {

struct Window {
  size_t bytes_per_rank, offset, bytes;
};

class Coll {
 public:
  virtual ~Coll() = default;
  virtual int version() const = 0;
  virtual const char* name() const = 0;
  // Tables without contexts give null.
  virtual nccl::Result init(void** context, uint64_t comm_id) = 0;
  virtual nccl::Result finalize(void* context) = 0;
  virtual nccl::Result devices(int* count) = 0;
  virtual nccl::Result get_properties(int device, nccl::PropertiesV11* properties) = 0;
  virtual nccl::Result listen(void* context, int device, void* handle, void** comm) = 0;
  virtual nccl::Result connect(void** handles, int ranks, int rank, void* listen_comm,
                               void** comm) = 0;
  virtual nccl::Result reduce_support(int type, int reduction, int* supported) = 0;
  virtual nccl::Result register_memory(void* comm, void* data, size_t bytes, int type,
                                       void** memory) = 0;
  virtual nccl::Result deregister_memory(void* comm, void* memory) = 0;
  virtual nccl::Result iallreduce(void* comm, void* send, void* receive, size_t count, int type,
                                  int reduction, void* send_memory, void* receive_memory,
                                  void** request) = 0;
  virtual nccl::Result iallgather(void* comm, void* send, void* receive, void* send_memory,
                                  void* receive_memory, const Window& window, void** request) = 0;
  virtual nccl::Result ireduce_scatter(void* comm, void* send, void* receive, void* send_memory,
                                       void* receive_memory, const Window& window, int type,
                                       int reduction, void** request) = 0;
  virtual nccl::Result iflush(void* comm, void* data, int bytes, void* memory, void** request) = 0;
  virtual nccl::Result test(void* request, int* done, int* bytes) = 0;
  virtual nccl::Result close_coll(void* comm) = 0;
  virtual nccl::Result close_listen(void* comm) = 0;
};

constexpr int kOldestColl = 8, kNewestColl = 11;

// Loads FILE as NCCL does (RTLD_NOW, RTLD_LOCAL), for good. Null and a text on stderr when there is
// no such table.
std::unique_ptr<Coll> load_coll(const std::string& file, int version);

}  // namespace bitrail::test
