#include "plugin/collnet/instance.h"

#include <atomic>
#include <memory>

#include "plugin/collnet/comm.h"
#include "plugin/log/log.h"
#include "plugin/net/devices.h"
#include "plugin/settings/settings.h"

namespace bitrail::plugin::collnet {
namespace {

struct Instances {
  std::mutex mutex;
  std::set<Instance*> all;
  Instance* shared = nullptr;
};

// Never destroyed: NCCL's threads may outlive static objects.
Instances& instances() {
  static auto* object = new Instances;
  return *object;
}

std::atomic<Mode> g_mode{Mode::off};

Mode mode_of(const config::Settings& settings) {
  if (settings.collnet == "exact") return Mode::exact;
  return settings.collnet == "onebit" ? Mode::onebit : Mode::off;
}

Choice read_settings() {
  config::Settings settings;
  const Status status = load_settings(&settings);
  if (!status.ok()) warn("init", "{}", status.text());
  settings.link_mbps = settings.link_us = 0;
  const Mode mode = status.ok() ? mode_of(settings) : Mode::off;
  if (mode != Mode::off) {
    find_devices();
    info("init", "CollNet is on: {}", settings.collnet);
  }
  g_mode.store(mode, std::memory_order_release);
  return {mode, std::move(settings)};
}

}  // namespace

Mode mode() { return g_mode.load(std::memory_order_acquire); }

Instance* create_instance(uint64_t comm_id) {
  auto made = std::make_unique<Instance>();
  made->comm_id = comm_id;
  made->choice = read_settings();
  Instances& known = instances();
  const std::lock_guard lock(known.mutex);
  known.all.insert(made.get());
  return made.release();
}

Instance* create_shared_instance() {
  Instances& known = instances();
  const std::lock_guard lock(known.mutex);
  if (known.shared == nullptr) {
    known.shared = new Instance;
    known.all.insert(known.shared);
  }
  Choice choice = read_settings();
  const std::lock_guard inner(known.shared->mutex);
  known.shared->choice = std::move(choice);
  return known.shared;
}

Choice choice_of(Instance* instance) {
  const std::lock_guard lock(instance->mutex);
  return instance->choice;
}

Instance* find_instance(void* context) {
  Instances& known = instances();
  const std::lock_guard lock(known.mutex);
  auto* instance = static_cast<Instance*>(context);
  return known.all.contains(instance) ? instance : nullptr;
}

Instance* shared_instance() {
  Instances& known = instances();
  const std::lock_guard lock(known.mutex);
  return known.shared;
}

void destroy_instance(void* context) {
  auto* instance = static_cast<Instance*>(context);
  {
    Instances& known = instances();
    const std::lock_guard lock(known.mutex);
    if (instance == known.shared || known.all.erase(instance) == 0) return;
  }
  // NCCL is done with this communicator: nobody else touches the list.
  while (!instance->comms.empty()) close_comm(*instance->comms.begin());
  delete instance;
}

}  // namespace bitrail::plugin::collnet
