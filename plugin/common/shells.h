// What listen(), connect() and accept() give to NCCL: objects that are kept once they are closed
// and used again, never freed, so that a call on a closed one is told apart and refused.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace bitrail::plugin {

// Of one type of them, all of the process.
template <typename Comm>
class Shells {
 public:
  // One that is closed.
  static Comm* take() {
    Shells& known = get();
    const std::lock_guard lock(known.mutex_);
    if (known.unused_.empty()) {
      known.all_.push_back(std::make_unique<Comm>());
      return known.all_.back().get();
    }
    Comm* comm = known.unused_.back();
    known.unused_.pop_back();
    return comm;
  }
  static void give_back(Comm* comm) {
    Shells& known = get();
    const std::lock_guard lock(known.mutex_);
    known.unused_.insert(known.unused_.begin(), comm);  // the longest unused is taken first
  }

 private:
  // Never destroyed: NCCL's threads may outlive static objects.
  static Shells& get() {
    static auto* object = new Shells;
    return *object;
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Comm>> all_;
  std::vector<Comm*> unused_;
};

// Null when `pointer` is null or not an open comm of this kind.
template <typename Comm, typename Kind>
Comm* open_as(void* pointer, Kind kind) {
  auto* comm = static_cast<Comm*>(pointer);
  const bool good = comm != nullptr && comm->kind.load(std::memory_order_acquire) == kind;
  return good ? comm : nullptr;
}

}  // namespace bitrail::plugin
