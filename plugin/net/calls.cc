#include "plugin/net/calls.h"

#include "runtime/transport/transport.h"

namespace bitrail::plugin::calls {
namespace {

constexpr int kMost = transport::kMaxGroupedReceives;

}  // namespace

nccl::Result devices(int* count) {
  return guarded("devices", [&] { return plugin::get_devices(count); });
}

nccl::Result deregister_memory(void* comm, void* memory) {
  return guarded("deregMr", [&] { return plugin::deregister_memory(comm, memory); });
}

nccl::Result iflush(void* receive_comm, int count, void** data, int* bytes, void** memories,
                    void** request) {
  return guarded("iflush", [&] {
    return plugin::iflush(receive_comm, count, data, bytes, memories, request);
  });
}

nccl::Result test(void* request, int* done, int* sizes) {
  return guarded("test", [&] { return plugin::test(request, done, sizes); });
}

nccl::Result close_send(void* send_comm) {
  return guarded("closeSend", [&] { return plugin::close(send_comm, false, true); });
}

nccl::Result close_receive(void* receive_comm) {
  return guarded("closeRecv", [&] { return plugin::close(receive_comm, false, false); });
}

nccl::Result close_listen(void* listen_comm) {
  return guarded("closeListen", [&] { return plugin::close(listen_comm, true, false); });
}

nccl::Result init_shared(nccl::Logger logger, nccl::ProfilerCallback profiler) {
  return guarded("init", [&] {
    set_logger(logger);
    create_shared_instance(profiler);
    return nccl::kSuccess;
  });
}

nccl::Result listen_shared(int device, void* handle, void** listen_comm) {
  return guarded("listen",
                 [&] { return plugin::listen(shared_instance(), device, handle, listen_comm); });
}

nccl::Result connect_shared(int device, void* handle, void** send_comm,
                            nccl::NetDeviceHandle** device_handle) {
  no_device_handle(device_handle);
  return guarded("connect",
                 [&] { return plugin::connect(shared_instance(), device, handle, send_comm); });
}

nccl::Result init(void** context, uint64_t comm_id, nccl::CommConfig* config, nccl::Logger logger,
                  nccl::ProfilerCallback profiler) {
  return guarded("init", [&] {
    set_logger(logger);
    if (context == nullptr) return refuse("init", "no place for the context");
    *context = nullptr;
    const int traffic_class = config == nullptr ? nccl::kUndefined : config->traffic_class;
    *context = create_instance(comm_id, traffic_class, profiler);
    return nccl::kSuccess;
  });
}

nccl::Result listen(void* context, int device, void* handle, void** listen_comm) {
  return guarded("listen", [&] {
    return plugin::listen(find_instance(context), device, handle, listen_comm);
  });
}

nccl::Result connect(void* context, int device, void* handle, void** send_comm,
                     nccl::NetDeviceHandle** device_handle) {
  no_device_handle(device_handle);
  return guarded("connect", [&] {
    return plugin::connect(find_instance(context), device, handle, send_comm);
  });
}

nccl::Result finalize(void* context) {
  return guarded("finalize", [&] {
    destroy_instance(context);
    return nccl::kSuccess;
  });
}

nccl::Result accept(void* listen_comm, void** receive_comm, nccl::NetDeviceHandle** device_handle) {
  no_device_handle(device_handle);
  return guarded("accept", [&] { return plugin::accept(listen_comm, receive_comm); });
}

nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory) {
  return guarded("regMr", [&] { return plugin::register_memory(comm, data, bytes, type, memory); });
}

nccl::Result isend(void* send_comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                   void** request) {
  return guarded(
      "isend", [&] { return plugin::isend(send_comm, data, bytes, tag, memory, parent, request); });
}

nccl::Result irecv(void* receive_comm, int count, void** data, size_t* bytes, int* tags,
                   void** memories, void** parents, void** request) {
  return guarded("irecv", [&] {
    return plugin::irecv(receive_comm, count, data, bytes, tags, memories, parents, request);
  });
}

nccl::Result register_memory_int(void* comm, void* data, int bytes, int type, void** memory) {
  if (memory != nullptr) *memory = nullptr;
  return guarded("regMr", [&] {
    if (bytes < 0) return refuse("regMr", "{} bytes", bytes);
    return plugin::register_memory(comm, data, static_cast<size_t>(bytes), type, memory);
  });
}

nccl::Result isend_int(void* send_comm, void* data, int bytes, int tag, void* memory,
                       void** request) {
  if (request != nullptr) *request = nullptr;
  return guarded("isend", [&] {
    if (bytes < 0) return refuse("isend", "{} bytes", bytes);
    return plugin::isend(send_comm, data, static_cast<size_t>(bytes), tag, memory, nullptr,
                         request);
  });
}

nccl::Result irecv_int(void* receive_comm, int count, void** data, int* bytes, int* tags,
                       void** memories, void** request) {
  if (request != nullptr) *request = nullptr;
  return guarded("irecv", [&] {
    size_t sizes[kMost] = {};
    for (int i = 0; bytes != nullptr && i < count && i < kMost; i++) {
      if (bytes[i] < 0) return refuse("irecv", "buffer {}: {} bytes", i, bytes[i]);
      sizes[i] = static_cast<size_t>(bytes[i]);
    }
    return plugin::irecv(receive_comm, count, data, bytes == nullptr ? nullptr : sizes, tags,
                         memories, nullptr, request);
  });
}

}  // namespace bitrail::plugin::calls
