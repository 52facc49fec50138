#include "tests/plugin/collnet/coll.h"

#include <dlfcn.h>

#include <climits>
#include <cstdio>

#include <fmt/core.h>

#include "plugin/abi/collnet_v10.h"
#include "plugin/abi/collnet_v11.h"
#include "plugin/abi/collnet_v8.h"
#include "plugin/abi/collnet_v9.h"
#include "tests/plugin/driver/table_net.h"

namespace bitrail::test {
namespace {

using nccl::Result;

template <typename Table, typename Properties, typename Part>
class TableColl : public Coll {
 public:
  TableColl(int version, const void* table)
      : version_(version), table_(static_cast<const Table*>(table)) {}

  int version() const override { return version_; }
  const char* name() const override { return table_->name; }

  Result init(void** context, [[maybe_unused]] uint64_t comm_id) override {
    *context = nullptr;
    if constexpr (kContexts) {
      return table_->init(context, comm_id, logger);
    } else {
      return table_->init(logger);
    }
  }
  Result finalize([[maybe_unused]] void* context) override {
    if constexpr (kContexts) return table_->finalize(context);
    return nccl::kSuccess;
  }
  Result devices(int* count) override { return table_->devices(count); }
  Result get_properties(int device, nccl::PropertiesV11* all) override {
    Properties properties;
    const Result result = table_->get_properties(device, all == nullptr ? nullptr : &properties);
    if (result != nccl::kSuccess || all == nullptr) return result;
    *all = {};
    all->name = properties.name;
    all->pointer_support = properties.pointer_support;
    all->max_comms = properties.max_comms;
    all->max_collective_bytes = nccl::kMaxCollectiveBytes;
    if constexpr (requires { properties.max_collective_bytes; }) {
      all->max_collective_bytes = properties.max_collective_bytes;
    }
    return result;
  }
  Result listen([[maybe_unused]] void* context, int device, void* handle, void** comm) override {
    if constexpr (kContexts) {
      return table_->listen(context, device, handle, comm);
    } else {
      return table_->listen(device, handle, comm);
    }
  }
  Result connect(void** handles, int ranks, int rank, void* listen_comm, void** comm) override {
    return table_->connect(handles, ranks, rank, listen_comm, comm);
  }
  Result reduce_support(int type, int reduction, int* supported) override {
    return table_->reduce_support(static_cast<nccl::DataType>(type),
                                  static_cast<nccl::Reduction>(reduction), supported);
  }
  Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory) override {
    return table_->register_memory(comm, data, bytes, type, memory);
  }
  Result deregister_memory(void* comm, void* memory) override {
    return table_->deregister_memory(comm, memory);
  }
  Result iallreduce(void* comm, void* send, void* receive, size_t count, int type, int reduction,
                    void* send_memory, void* receive_memory, void** request) override {
    if constexpr (sizeof(Table) == sizeof(nccl::CollNetV8)) {
      return table_->iallreduce(
          comm, send, receive, static_cast<int>(count), static_cast<nccl::DataType>(type),
          static_cast<nccl::Reduction>(reduction), send_memory, receive_memory, request);
    } else {
      return table_->iallreduce(comm, send, receive, count, static_cast<nccl::DataType>(type),
                                static_cast<nccl::Reduction>(reduction), send_memory,
                                receive_memory, request);
    }
  }
  Result iallgather(void* comm, void* send, void* receive, void* send_memory, void* receive_memory,
                    const Window& window, void** request) override {
    Part part = part_of(receive, window.bytes, receive_memory);
    return table_->iallgather(comm, send, 1, &part, window.bytes_per_rank, window.offset,
                              window.bytes, send_memory, request);
  }
  Result ireduce_scatter(void* comm, void* send, void* receive, void* send_memory,
                         void* receive_memory, const Window& window, int type, int reduction,
                         void** request) override {
    Part part = part_of(send, window.bytes, send_memory);
    return table_->ireduce_scatter(comm, 1, &part, receive, window.bytes_per_rank, window.offset,
                                   window.bytes, static_cast<nccl::DataType>(type),
                                   static_cast<nccl::Reduction>(reduction), receive_memory,
                                   request);
  }
  Result iflush(void* comm, void* data, int bytes, void* memory, void** request) override {
    return table_->iflush(comm, data, bytes, memory, request);
  }
  Result test(void* request, int* done, int* bytes) override {
    return table_->test(request, done, bytes);
  }
  Result close_coll(void* comm) override { return table_->close_coll(comm); }
  Result close_listen(void* comm) override { return table_->close_listen(comm); }

 private:
  static constexpr bool kContexts = sizeof(Table) == sizeof(nccl::CollNetV11);
  static Part part_of(void* address, size_t bytes, void* memory) {
    Part part{};
    part.memory = memory;
    part.address = address;
    part.bytes = static_cast<decltype(part.bytes)>(bytes);
    return part;
  }

  int version_;
  const Table* table_;
};

template <typename Table, typename Properties, typename Part>
std::unique_ptr<Coll> make(int version, const void* table) {
  return std::make_unique<TableColl<Table, Properties, Part>>(version, table);
}

}  // namespace

std::unique_ptr<Coll> load_coll(const std::string& file, int version) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string symbol = fmt::format("ncclCollNetPlugin_v{}", version);
  const void* table = handle == nullptr ? nullptr : dlsym(handle, symbol.c_str());
  if (table == nullptr) {
    (void)fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  switch (version) {
    case 8:
      return make<nccl::CollNetV8, nccl::PropertiesV8, nccl::PartV8>(8, table);
    case 9:
      return make<nccl::CollNetV9, nccl::PropertiesV9, nccl::PartV9>(9, table);
    case 10:
      return make<nccl::CollNetV10, nccl::PropertiesV9, nccl::PartV9>(10, table);
    default:
      return make<nccl::CollNetV11, nccl::PropertiesV11, nccl::PartV9>(11, table);
  }
}

}  // namespace bitrail::test
