#include "plugin/collnet/comm.h"

#include <algorithm>

#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {
namespace {

// The other ranks wait for calls that this one gives up: they are told.
void give_up(Comm* comm) {
  const bool any = std::any_of(std::begin(comm->requests), std::end(comm->requests),
                               [](const Request& request) { return !request.parts.empty(); });
  if (!any) return;
  (void)bitrail_comm_abort(comm->handle, "closeColl with calls in flight");
  for (Request& request : comm->requests) {
    for (bitrail_request_t& part : request.parts) {
      if (part != nullptr) (void)bitrail_wait(&part);
    }
  }
}

}  // namespace

Comm* open_comm(Kind kind, Instance* instance) {
  Comm* comm = Shells<Comm>::take();
  comm->instance = instance;
  comm->kind.store(kind, std::memory_order_release);
  const std::lock_guard lock(instance->mutex);
  instance->comms.insert(comm);
  return comm;
}

void close_comm(Comm* comm) {
  comm->kind.store(Kind::closed, std::memory_order_release);
  comm->meeting = {};
  comm->port.reset();
  {
    const std::lock_guard lock(comm->mutex);
    if (comm->handle != nullptr) {
      give_up(comm);
      comm->states.clear();
      const Status status = said(bitrail_comm_destroy(comm->handle));
      if (!status.ok()) warn("closeColl", "{}", status.text());
      comm->handle = nullptr;
    }
    for (Request& request : comm->requests) request = {};
    comm->compressing = nullptr;
    comm->memory.clear();
    comm->staging = nullptr;
  }
  {
    const std::lock_guard lock(comm->instance->mutex);
    comm->instance->comms.erase(comm);
  }
  comm->instance = nullptr;
  Shells<Comm>::give_back(comm);
}

Request* take_request(Comm* comm) {
  for (Request& request : comm->requests) {
    if (request.used) continue;
    request.used = true;
    request.comm = comm;
    return &request;
  }
  return nullptr;
}

void give_back(Request* request) {
  Comm* comm = request->comm;
  if (comm->compressing == request) comm->compressing = nullptr;
  *request = {};
  request->comm = comm;
}

Status said(bitrail_status_t code) {
  if (code == BITRAIL_OK) return {};
  return Status(code, bitrail_last_error());
}

const Memory* find_memory(const Comm* comm, const void* memory) {
  const auto found = std::find_if(comm->memory.begin(), comm->memory.end(),
                                  [memory](const auto& known) { return known.get() == memory; });
  return found == comm->memory.end() ? nullptr : found->get();
}

}  // namespace bitrail::plugin::collnet
