// What listen(), connect() and accept() give to NCCL, and their requests.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "plugin/common/shells.h"
#include "plugin/net/instance.h"

namespace bitrail::plugin {

enum class Kind : uint32_t { closed, listening, sending, receiving };

struct Comm;

enum class State : uint32_t { unused, pending, done };

struct Request {
  std::atomic<State> state{State::unused};
  Comm* comm = nullptr;
  int count = 0;      // sizes to tell
  bool sent = false;  // isend: `bytes` is the size to tell
  size_t bytes = 0;
  int events = 0;  // profiler events that are open
  void* event[transport::kMaxGroupedReceives] = {};
  transport::Request transport;
};

constexpr unsigned kRequests = nccl::kMaxRequests * transport::kMaxGroupedReceives;

struct Comm {
  std::atomic<Kind> kind{Kind::closed};
  Domain* domain = nullptr;
  int device = 0;
  Deadline deadline;  // listening: until when somebody has to come
  std::unique_ptr<transport::Listener> listener;
  std::unique_ptr<transport::Sender> sender;
  std::unique_ptr<transport::Receiver> receiver;
  unsigned next_request = 0;  // guarded by the domain's mutex
  std::unique_ptr<Request[]> requests;
};

// Takes over one use of the domain.
Comm* open_comm(Kind kind, Domain* domain, int device);
// Ends what is in flight; the requests are gone. Does not wait for peers for more than a second.
void close_comm(Comm* comm);
bool connected(const Comm* comm);  // sending or receiving

// Null when `pointer` is null or not an open comm of this kind.
inline Comm* as(void* pointer, Kind kind) { return open_as<Comm>(pointer, kind); }

// With the domain's mutex held: an unused request, pending from now on; null when all are in use.
Request* search_request(Comm* comm);
inline Request* take_request(Comm* comm) {
  Request* next = &comm->requests[comm->next_request % kRequests];
  if (next->state.load(std::memory_order_acquire) != State::unused) return search_request(comm);
  comm->next_request++;
  next->state.store(State::pending, std::memory_order_relaxed);
  return next;
}

// Gives up a set-up; `key` is in instance->pending.
void drop_pending(Instance* instance, const void* key);

}  // namespace bitrail::plugin
