// One transport context with its lock: what the connections of a communicator share.
//
// A context is one progress domain and wants its calls serialised; NCCL calls from a service and a
// progress thread. Whoever holds `mutex` may use the context and all that it made. test() moves the
// context forward; where NCCL has nothing to test and sleeps, the caretaker does, because what UCX
// counts as sent may still wait for room in a socket.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "plugin/net/lock.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

struct Instance;

struct Domain {
  Lock mutex;
  std::unique_ptr<transport::Context> context;
  Instance* instance = nullptr;
  std::thread::id thread;          // of those that got it; see Instance::by_thread
  int users = 0;                   // comms, set-ups and registrations; guarded by Instance::mutex
  bool retired = false;            // broken, or older than a broken one: no new users
  std::atomic<uint64_t> turns{0};  // calls of progress(), so that the caretaker sees idleness
};

// With the lock held.
inline void progress(Domain* domain) {
  domain->turns.store(domain->turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  domain->context->progress();
}

}  // namespace bitrail::plugin
