// Net over a table of one version: converts as NCCL's own shims do.
#pragma once

#include <algorithm>
#include <climits>
#include <memory>

#include "plugin/abi/net_v10.h"
#include "plugin/abi/net_v11.h"
#include "plugin/abi/net_v12.h"
#include "plugin/abi/net_v6.h"
#include "plugin/abi/net_v7.h"
#include "plugin/abi/net_v8.h"
#include "plugin/abi/net_v9.h"
#include "tests/plugin/driver/net.h"

namespace bitrail::test {

void logger(nccl::LogLevel level, unsigned long flags, const char* file, int line,
            const char* format, ...) __attribute__((format(printf, 5, 6)));
nccl::Result profiler(void** event, int type, void* parent, int64_t id, void* data);

template <typename Table, typename Properties>
class TableNet : public Net {
 public:
  TableNet(int version, const void* table)
      : version_(version), table_(static_cast<const Table*>(table)) {}

  int version() const override { return version_; }
  const char* name() const override { return table_->name; }

  nccl::Result init(void** context, uint64_t comm_id) override {
    *context = nullptr;
    if constexpr (kContexts) {
      nccl::CommConfig config{nccl::kUndefined};
      return table_->init(context, comm_id, &config, logger, profiler);
    } else if constexpr (kProfiler) {
      return table_->init(logger, profiler);
    } else {
      return table_->init(logger);
    }
  }
  nccl::Result finalize([[maybe_unused]] void* context) override {
    if constexpr (kContexts) return table_->finalize(context);
    return nccl::kSuccess;
  }
  nccl::Result devices(int* count) override { return table_->devices(count); }
  nccl::Result get_properties(int device, nccl::PropertiesV12* all) override {
    Properties properties;
    const nccl::Result result =
        table_->get_properties(device, all == nullptr ? nullptr : &properties);
    if (result != nccl::kSuccess) return result;
    *all = {};
    all->name = properties.name;
    all->pci_path = properties.pci_path;
    all->guid = properties.guid;
    all->pointer_support = properties.pointer_support;
    all->speed_mbps = properties.speed_mbps;
    all->port = properties.port;
    all->latency_us = properties.latency_us;
    all->max_comms = properties.max_comms;
    all->max_receives = properties.max_receives;
    all->max_p2p_bytes = nccl::kMaxMessageBytes;
    all->virtual_device.count = 1;
    if constexpr (requires { properties.max_p2p_bytes; }) {
      all->max_p2p_bytes = properties.max_p2p_bytes;
      all->virtual_device.count = properties.virtual_device.count;
      std::copy_n(properties.virtual_device.devices, 4, all->virtual_device.devices);
    }
    return result;
  }
  nccl::Result make_device([[maybe_unused]] int* device,
                           [[maybe_unused]] nccl::VirtualDeviceV12* parts) override {
    if constexpr (std::is_same_v<Table, nccl::NetV12>) {
      return table_->make_virtual_device(device, parts);
    } else if constexpr (kLongSizes) {
      if (parts == nullptr) return table_->make_virtual_device(device, nullptr);
      nccl::VirtualDeviceV9 fewer{parts->count, {}};
      std::copy_n(parts->devices, 4, fewer.devices);
      return table_->make_virtual_device(device, &fewer);
    } else {
      return nccl::kInvalidUsage;
    }
  }
  nccl::Result listen([[maybe_unused]] void* context, int device, void* handle,
                      void** comm) override {
    if constexpr (kContexts) {
      return table_->listen(context, device, handle, comm);
    } else {
      return table_->listen(device, handle, comm);
    }
  }
  nccl::Result connect([[maybe_unused]] void* context, int device, void* handle,
                       void** comm) override {
    auto* unwritten = reinterpret_cast<nccl::NetDeviceHandle*>(this);
    nccl::NetDeviceHandle* device_handle = unwritten;
    nccl::Result result = nccl::kSuccess;
    if constexpr (kContexts) {
      result = table_->connect(context, device, handle, comm, &device_handle);
    } else if constexpr (kProfiler) {
      nccl::CommConfig config{nccl::kUndefined};
      result = table_->connect(device, &config, handle, comm, &device_handle);
    } else if constexpr (sizeof(Table) > sizeof(nccl::NetV6)) {
      result = table_->connect(device, handle, comm, &device_handle);
    } else {
      device_handle = nullptr;
      result = table_->connect(device, handle, comm);
    }
    return device_handle == unwritten ? nccl::kInternalError : result;
  }
  nccl::Result accept(void* listen_comm, void** comm) override {
    if constexpr (sizeof(Table) > sizeof(nccl::NetV6)) {
      nccl::NetDeviceHandle* device_handle = nullptr;
      return table_->accept(listen_comm, comm, &device_handle);
    } else {
      return table_->accept(listen_comm, comm);
    }
  }
  nccl::Result register_memory(void* comm, void* data, size_t bytes, int type,
                               void** memory) override {
    if constexpr (std::is_same_v<Table, nccl::NetV6> || std::is_same_v<Table, nccl::NetV7>) {
      if (bytes > INT_MAX) return nccl::kInternalError;
      return table_->register_memory(comm, data, static_cast<int>(bytes), type, memory);
    } else {
      return table_->register_memory(comm, data, bytes, type, memory);
    }
  }
  nccl::Result deregister_memory(void* comm, void* memory) override {
    return table_->deregister_memory(comm, memory);
  }
  nccl::Result isend(void* comm, void* data, size_t bytes, int tag, void* memory,
                     [[maybe_unused]] void* parent, void** request) override {
    if constexpr (kProfiler) {
      return table_->isend(comm, data, bytes, tag, memory, parent, request);
    } else if constexpr (kLongSizes) {
      return table_->isend(comm, data, bytes, tag, memory, request);
    } else {
      return table_->isend(comm, data, static_cast<int>(bytes), tag, memory, request);
    }
  }
  nccl::Result irecv(void* comm, int count, void** data, size_t* bytes, int* tags, void** memories,
                     [[maybe_unused]] void** parents, void** request) override {
    if constexpr (kProfiler) {
      return table_->irecv(comm, count, data, bytes, tags, memories, parents, request);
    } else if constexpr (kLongSizes) {
      return table_->irecv(comm, count, data, bytes, tags, memories, request);
    } else {
      int sizes[8] = {};
      for (int i = 0; i < count && i < 8; i++) sizes[i] = static_cast<int>(bytes[i]);
      if (request != nullptr) *request = nullptr;
      return table_->irecv(comm, count, data, sizes, tags, memories, request);
    }
  }
  nccl::Result iflush(void* comm, int count, void** data, int* bytes, void** memories,
                      void** request) override {
    return table_->iflush(comm, count, data, bytes, memories, request);
  }
  nccl::Result test(void* request, int* done, int* sizes) override {
    return table_->test(request, done, sizes);
  }
  nccl::Result close_send(void* comm) override { return table_->close_send(comm); }
  nccl::Result close_receive(void* comm) override { return table_->close_receive(comm); }
  nccl::Result close_listen(void* comm) override { return table_->close_listen(comm); }

 private:
  static constexpr bool kLongSizes = sizeof(Table) >= sizeof(nccl::NetV9);
  static constexpr bool kContexts = sizeof(Table) >= sizeof(nccl::NetV11);
  static constexpr bool kProfiler = kContexts || std::is_same_v<Table, nccl::NetV10>;

  int version_;
  const Table* table_;
};

template <typename Table, typename Properties>
std::unique_ptr<Net> make_table_net(int version, const void* table) {
  return std::make_unique<TableNet<Table, Properties>>(version, table);
}

}  // namespace bitrail::test
