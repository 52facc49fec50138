// What init() gives: a communicator's context (table versions from 11 on), and the one of the
// process for tables without contexts.
#pragma once

#include <memory>
#include <mutex>
#include <set>

namespace bitrail::plugin {

template <typename Instance>
struct Contexts {
  std::mutex mutex;  // guards what follows
  std::set<Instance*> all;
  Instance* shared = nullptr;

  // Never destroyed: NCCL's threads may outlive static objects.
  static Contexts& get() {
    static auto* object = new Contexts;
    return *object;
  }
  Instance* add(std::unique_ptr<Instance> made) {
    const std::lock_guard lock(mutex);
    all.insert(made.get());
    return made.release();
  }
  // Null for what is no living context.
  Instance* find(void* context) {
    const std::lock_guard lock(mutex);
    auto* instance = static_cast<Instance*>(context);
    return all.contains(instance) ? instance : nullptr;
  }
  Instance* find_shared() {
    const std::lock_guard lock(mutex);
    return shared;
  }
  // For its end, which is the caller's then. Null for the shared one and for unknown ones.
  std::unique_ptr<Instance> take_out(void* context) {
    const std::lock_guard lock(mutex);
    auto* instance = static_cast<Instance*>(context);
    if (instance == shared || all.erase(instance) == 0) return nullptr;
    return std::unique_ptr<Instance>(instance);
  }
};

}  // namespace bitrail::plugin
