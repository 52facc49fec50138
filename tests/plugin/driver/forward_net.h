// A net that does what another does, to change one call of it.
#pragma once

#include "tests/plugin/driver/net.h"

namespace bitrail::test {

class ForwardNet : public Net {
 public:
  explicit ForwardNet(Net* inner) : inner_(inner) {}
  int version() const override { return inner_->version(); }
  const char* name() const override { return inner_->name(); }
  nccl::Result init(void** context, uint64_t comm_id) override {
    return inner_->init(context, comm_id);
  }
  nccl::Result finalize(void* context) override { return inner_->finalize(context); }
  nccl::Result devices(int* count) override { return inner_->devices(count); }
  nccl::Result get_properties(int device, nccl::PropertiesV12* properties) override {
    return inner_->get_properties(device, properties);
  }
  nccl::Result make_device(int* device, nccl::VirtualDeviceV12* parts) override {
    return inner_->make_device(device, parts);
  }
  nccl::Result listen(void* context, int device, void* handle, void** comm) override {
    return inner_->listen(context, device, handle, comm);
  }
  nccl::Result connect(void* context, int device, void* handle, void** comm) override {
    return inner_->connect(context, device, handle, comm);
  }
  nccl::Result accept(void* listen_comm, void** comm) override {
    return inner_->accept(listen_comm, comm);
  }
  nccl::Result register_memory(void* comm, void* data, size_t bytes, int type,
                               void** memory) override {
    return inner_->register_memory(comm, data, bytes, type, memory);
  }
  nccl::Result deregister_memory(void* comm, void* memory) override {
    return inner_->deregister_memory(comm, memory);
  }
  nccl::Result isend(void* comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                     void** request) override {
    return inner_->isend(comm, data, bytes, tag, memory, parent, request);
  }
  nccl::Result irecv(void* comm, int count, void** data, size_t* bytes, int* tags, void** memories,
                     void** parents, void** request) override {
    return inner_->irecv(comm, count, data, bytes, tags, memories, parents, request);
  }
  nccl::Result iflush(void* comm, int count, void** data, int* bytes, void** memories,
                      void** request) override {
    return inner_->iflush(comm, count, data, bytes, memories, request);
  }
  nccl::Result test(void* request, int* done, int* sizes) override {
    return inner_->test(request, done, sizes);
  }
  nccl::Result close_send(void* comm) override { return inner_->close_send(comm); }
  nccl::Result close_receive(void* comm) override { return inner_->close_receive(comm); }
  nccl::Result close_listen(void* comm) override { return inner_->close_listen(comm); }

 protected:
  Net* inner_;
};

}  // namespace bitrail::test
