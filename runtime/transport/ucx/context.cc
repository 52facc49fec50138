#include "runtime/transport/ucx/context.h"

#include "runtime/transport/interfaces.h"
#include "runtime/transport/ucx/library.h"
#include "runtime/transport/ucx/listener.h"
#include "runtime/transport/ucx/memory.h"
#include "runtime/transport/ucx/worker.h"

namespace bitrail::transport::ucx {
namespace {

Status no_device(int device) {
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "transport ucx has one device (0), not number {}",
                 device);
}

class UcxContext : public Context {
 public:
  UcxContext(std::shared_ptr<Worker> worker, const Interface& interface)
      : worker_(std::move(worker)), address_(interface.address) {
    device_.name = worker_->transports();
    device_.port = 1;
    device_.latency_us = 20;  // TCP over Ethernet
    describe_interface(interface, &device_);
    device_.max_message_bytes = size_t{1} << 40;
    device_.registration_is_global = true;
  }
  ~UcxContext() override { worker_->close(); }

  const char* name() const override { return "ucx"; }
  int devices() const override { return 1; }
  const DeviceProperties& device(int /*index*/) const override { return device_; }

  Status listen(int device, Handle* handle, std::unique_ptr<Listener>* listener) override {
    if (device != 0) return no_device(device);
    auto made = std::make_unique<UcxListener>(worker_);
    BITRAIL_TRY(made->open(address_, handle));
    *listener = std::move(made);
    return {};
  }

  Status connect(int device, const Handle& handle, const Peer& peer, Deadline deadline,
                 std::unique_ptr<Connecting>* pending, std::unique_ptr<Sender>* sender) override {
    sender->reset();
    if (device != 0) return no_device(device);
    if (*pending == nullptr) {
      auto made = std::make_unique<UcxConnecting>(worker_);
      BITRAIL_TRY(made->start(handle, peer, deadline));
      *pending = std::move(made);
    }
    Status status = static_cast<UcxConnecting*>(pending->get())->poll(sender);
    if (!status.ok() || *sender != nullptr) pending->reset();
    return status;
  }

  Status register_memory(void* data, size_t bytes, MemoryType type,
                         std::unique_ptr<Memory>* memory) override {
    if (type != kHost) {
      return failure(BITRAIL_ERR_UNSUPPORTED, "transport ucx registers host memory only");
    }
    return UcxMemory::create(worker_, data, bytes, memory);
  }

  int progress() override { return worker_->progress(); }
  int event_fd() const override { return worker_->event_fd(); }
  Status arm(bool* idle) override { return worker_->arm(idle); }
  int64_t next_timer_ns() const override { return worker_->next_timer_ns(); }

 private:
  std::shared_ptr<Worker> worker_;
  sockaddr_storage address_;
  DeviceProperties device_;
};

}  // namespace

Status open_context(const Options& options, std::unique_ptr<Context>* context) {
  Interface interface;
  BITRAIL_TRY(choose_interface(options.bind_address, &interface));
  std::shared_ptr<Worker> worker;
  BITRAIL_TRY(Worker::open(options, &worker));
  *context = std::make_unique<UcxContext>(std::move(worker), interface);
  return {};
}

Availability availability() { return {"ucx", true, "UCX " + version()}; }

}  // namespace bitrail::transport::ucx
