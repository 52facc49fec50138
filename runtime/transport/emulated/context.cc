#include "runtime/transport/emulated/context.h"

#include <algorithm>

#include "runtime/transport/emulated/sender.h"

namespace bitrail::transport::emulated {
namespace {

class EmulatedContext : public Context {
 public:
  EmulatedContext(std::unique_ptr<Context> inner, std::shared_ptr<Link> link,
                  const Options& options)
      : inner_(std::move(inner)),
        link_(std::move(link)),
        name_(std::string(inner_->name()) + "+emulated") {
    for (int i = 0; i < inner_->devices(); i++) {
      DeviceProperties device = inner_->device(i);
      if (options.link_mbps > 0) device.speed_mbps = options.link_mbps;
      device.latency_us += options.link_us;
      devices_.push_back(std::move(device));
    }
  }
  ~EmulatedContext() override {
    link_->closed = true;
    for (EmulatedSender* sender : link_->senders) sender->hand_over_all();
  }

  const char* name() const override { return name_.c_str(); }
  int devices() const override { return inner_->devices(); }
  const DeviceProperties& device(int index) const override {
    return devices_[static_cast<size_t>(index)];
  }
  Status combine(const std::vector<int>& parts, int* device) override {
    return inner_->combine(parts, device);
  }

  Status listen(int device, Handle* handle, std::unique_ptr<Listener>* listener) override {
    return inner_->listen(device, handle, listener);
  }

  Status connect(int device, const Handle& handle, const Peer& peer, Deadline deadline,
                 std::unique_ptr<Connecting>* pending, std::unique_ptr<Sender>* sender) override {
    BITRAIL_TRY(inner_->connect(device, handle, peer, deadline, pending, sender));
    const int node = peer.rank / link_->ranks_per_node;
    // Who the peer is has to be known for its card to be.
    if (*sender == nullptr || peer.rank < 0 || node == link_->node) return {};
    if (node >= link_->nodes) {
      sender->reset();
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "connect to rank {} of a world of {} nodes",
                     peer.rank, link_->nodes);
    }
    *sender = std::make_unique<EmulatedSender>(link_, link_->cards->node(node), std::move(*sender));
    return {};
  }

  Status register_memory(void* data, size_t bytes, MemoryType type,
                         std::unique_ptr<Memory>* memory) override {
    return inner_->register_memory(data, bytes, type, memory);
  }

  int progress() override {
    const int count = inner_->progress();
    return count + link_->serve();
  }
  int event_fd() const override { return inner_->event_fd(); }
  Status arm(bool* idle) override {
    *idle = false;
    if (link_->next_timer_ns() <= now_ns()) return {};
    return inner_->arm(idle);
  }
  int64_t next_timer_ns() const override {
    return std::min(inner_->next_timer_ns(), link_->next_timer_ns());
  }

 private:
  std::unique_ptr<Context> inner_;
  std::shared_ptr<Link> link_;
  std::string name_;
  std::vector<DeviceProperties> devices_;
};

}  // namespace

Status wrap(std::unique_ptr<Context> inner, const Options& options,
            std::unique_ptr<Context>* context) {
  if (options.ranks_per_node < 1 || options.world_size < 1 || options.identity.rank < 0 ||
      options.identity.rank >= options.world_size) {
    return failure(BITRAIL_ERR_CONFIG,
                   "link emulation: rank {} of {} with {} ranks a node (BITRAIL_RANKS_PER_NODE)",
                   options.identity.rank, options.world_size, options.ranks_per_node);
  }
  auto link = std::make_shared<Link>();
  link->ranks_per_node = options.ranks_per_node;
  link->nodes = (options.world_size + options.ranks_per_node - 1) / options.ranks_per_node;
  link->node = options.identity.rank / options.ranks_per_node;
  link->shape = make_shape(options.link_mbps, options.link_us);
  BITRAIL_TRY(Cards::open(options.identity.job_id, options.identity.secret, link->nodes,
                          options.world_size, &link->cards));
  link->mine = link->cards->node(link->node);
  *context = std::make_unique<EmulatedContext>(std::move(inner), std::move(link), options);
  return {};
}

}  // namespace bitrail::transport::emulated
