#include "plugin/net/comm.h"

#include <vector>

namespace bitrail::plugin {
namespace {

void on_done(transport::Request* request) {
  static_cast<Request*>(request->user)->state.store(State::done, std::memory_order_release);
}

void prepare_requests(Comm* comm) {
  if (comm->requests == nullptr) comm->requests = std::make_unique<Request[]>(kRequests);
  for (unsigned i = 0; i < kRequests; i++) {
    Request* request = &comm->requests[i];
    request->state.store(State::unused, std::memory_order_relaxed);
    request->comm = comm;
    request->events = 0;
    request->transport.on_done = on_done;
    request->transport.user = request;
  }
}

}  // namespace

Comm* open_comm(Kind kind, Domain* domain, int device) {
  Comm* comm = Shells<Comm>::take();
  comm->domain = domain;
  comm->device = device;
  comm->deadline = {};
  comm->next_request = 0;
  if (kind != Kind::listening) prepare_requests(comm);
  comm->kind.store(kind, std::memory_order_release);
  Instance* instance = domain->instance;
  const std::lock_guard lock(instance->mutex);
  instance->comms.insert(comm);
  return comm;
}

void close_comm(Comm* comm) {
  Domain* domain = comm->domain;
  comm->kind.store(Kind::closed, std::memory_order_release);
  {
    const std::lock_guard lock(domain->mutex);
    comm->listener.reset();
    comm->sender.reset();
    comm->receiver.reset();
  }
  comm->domain = nullptr;
  {
    const std::lock_guard lock(domain->instance->mutex);
    domain->instance->comms.erase(comm);
  }
  release_domain(domain);
  Shells<Comm>::give_back(comm);
}

bool connected(const Comm* comm) {
  const Kind kind = comm->kind.load(std::memory_order_acquire);
  return kind == Kind::sending || kind == Kind::receiving;
}

Request* search_request(Comm* comm) {
  for (unsigned tries = 0; tries < kRequests; tries++) {
    Request* request = &comm->requests[comm->next_request++ % kRequests];
    if (request->state.load(std::memory_order_acquire) != State::unused) continue;
    request->state.store(State::pending, std::memory_order_relaxed);
    return request;
  }
  return nullptr;
}

void drop_pending(Instance* instance, const void* key) {
  Pending dropped;
  {
    const std::lock_guard lock(instance->mutex);
    auto node = instance->pending.extract(key);
    if (node.empty()) return;
    dropped = std::move(node.mapped());
  }
  {
    const std::lock_guard lock(dropped.domain->mutex);
    dropped.state.reset();
  }
  release_domain(dropped.domain);
}

}  // namespace bitrail::plugin
