#include "plugin/collnet/calls.h"

namespace bitrail::plugin::collnet::calls {

nccl::Result devices(int* count) {
  return guarded("devices", [&] { return get_devices(count); });
}

nccl::Result connect(void* handles[], int ranks, int rank, void* listen_comm, void** coll_comm) {
  return guarded("connect",
                 [&] { return collnet::connect(handles, ranks, rank, listen_comm, coll_comm); });
}

nccl::Result reduce_support(nccl::DataType type, nccl::Reduction reduction, int* supported) {
  return guarded("reduceSupport",
                 [&] { return collnet::reduce_support(type, reduction, supported); });
}

nccl::Result register_memory(void* comm, void* data, size_t bytes, int type, void** memory) {
  return guarded("regMr",
                 [&] { return collnet::register_memory(comm, data, bytes, type, memory); });
}

nccl::Result deregister_memory(void* comm, void* memory) {
  return guarded("deregMr", [&] { return collnet::deregister_memory(comm, memory); });
}

nccl::Result iflush(void* comm, void* data, int bytes, void* memory, void** request) {
  return guarded("iflush", [&] { return collnet::iflush(comm, data, bytes, memory, request); });
}

nccl::Result test(void* request, int* done, int* bytes) {
  return guarded("test", [&] { return collnet::test(request, done, bytes); });
}

nccl::Result close_coll(void* coll_comm) {
  return guarded("closeColl", [&] { return collnet::close(coll_comm, false); });
}

nccl::Result close_listen(void* listen_comm) {
  return guarded("closeListen", [&] { return collnet::close(listen_comm, true); });
}

nccl::Result init_shared(nccl::Logger logger) {
  return guarded("init", [&] {
    set_logger(logger);
    create_shared_instance();
    return nccl::kSuccess;
  });
}

nccl::Result listen_shared(int device, void* handle, void** listen_comm) {
  return guarded("listen", [&] {
    return collnet::listen(collnet::shared_instance(), device, handle, listen_comm);
  });
}

nccl::Result iallreduce(void* comm, void* send, void* receive, size_t count, nccl::DataType type,
                        nccl::Reduction reduction, void* send_memory, void* receive_memory,
                        void** request) {
  return guarded("iallreduce", [&] {
    return collnet::iallreduce(comm, send, receive, count, type, reduction, send_memory,
                               receive_memory, request);
  });
}

}  // namespace bitrail::plugin::collnet::calls
