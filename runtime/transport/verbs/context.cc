#include "runtime/transport/verbs/context.h"

#include "runtime/transport/interfaces.h"
#include "runtime/transport/verbs/listener.h"
#include "runtime/transport/verbs/memory.h"
#include "runtime/transport/verbs/message.h"
#include "runtime/transport/verbs/worker.h"

namespace bitrail::transport::verbs {
namespace {

class VerbsContext : public Context {
 public:
  VerbsContext(std::shared_ptr<Worker> worker, const sockaddr_storage& address)
      : worker_(std::move(worker)), address_(address) {
    for (const auto& port : worker_->ports()) {
      devices_.push_back(port->properties);
      // Short messages are copied by the processor, and flush() knows no device.
      devices_.back().memory_types = kHost;
      devices_.back().max_message_bytes = kMaxMessageBytes;
      devices_.back().registration_is_global = true;
      devices_.back().registers_messages = true;
    }
  }
  ~VerbsContext() override { worker_->close(); }

  const char* name() const override { return "verbs"; }
  int devices() const override { return static_cast<int>(devices_.size()); }
  const DeviceProperties& device(int index) const override {
    return devices_[static_cast<size_t>(index)];
  }

  Status combine(const std::vector<int>& parts, int* device) override {
    return worker_->combine(parts, device);
  }

  Status listen(int device, Handle* handle, std::unique_ptr<Listener>* listener) override {
    BITRAIL_TRY(check_device(device));
    auto made = std::make_unique<VerbsListener>(worker_, device);
    BITRAIL_TRY(made->open(address_, handle));
    *listener = std::move(made);
    return {};
  }

  Status connect(int device, const Handle& handle, const Peer& peer, Deadline deadline,
                 std::unique_ptr<Connecting>* pending, std::unique_ptr<Sender>* sender) override {
    sender->reset();
    BITRAIL_TRY(check_device(device));
    if (*pending == nullptr) {
      auto made = std::make_unique<VerbsConnecting>(worker_);
      BITRAIL_TRY(made->start(device, handle, peer, deadline));
      *pending = std::move(made);
    }
    Status status = static_cast<VerbsConnecting*>(pending->get())->poll(sender);
    if (!status.ok() || *sender != nullptr) pending->reset();
    return status;
  }

  Status register_memory(void* data, size_t bytes, MemoryType type,
                         std::unique_ptr<Memory>* memory) override {
    if (type != kHost) {
      return failure(BITRAIL_ERR_UNSUPPORTED, "transport verbs registers host memory only");
    }
    return VerbsMemory::create(worker_->ports(), data, bytes, type, memory);
  }

  int progress() override { return worker_->progress(); }
  int event_fd() const override { return worker_->event_fd(); }
  Status arm(bool* idle) override { return worker_->arm(idle); }
  int64_t next_timer_ns() const override { return worker_->next_timer_ns(); }

 private:
  Status check_device(int device) const {
    if (worker_->has_device(device)) return {};
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "transport verbs has {} devices, no number {}",
                   devices_.size(), device);
  }

  std::shared_ptr<Worker> worker_;
  sockaddr_storage address_;
  std::vector<DeviceProperties> devices_;
};

}  // namespace

Status open_context(const Options& options, std::unique_ptr<Context>* context) {
  Interface interface;
  BITRAIL_TRY(choose_interface(options.bind_address, &interface));
  std::shared_ptr<Worker> worker;
  BITRAIL_TRY(Worker::open(options, &worker));
  *context = std::make_unique<VerbsContext>(std::move(worker), interface.address);
  return {};
}

Availability availability(const IbOptions& ib) {
  std::vector<std::shared_ptr<Port>> ports;
  std::string why;
  const Status status = open_ports(ib, &ports, &why);
  if (!status.ok()) return {"verbs", false, status.text()};
  if (ports.empty()) return {"verbs", false, "no usable port: " + why};
  std::string names;
  for (const auto& port : ports) names += (names.empty() ? "" : ", ") + port->name;
  return {"verbs", true, names};
}

}  // namespace bitrail::transport::verbs
