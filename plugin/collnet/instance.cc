#include "plugin/collnet/instance.h"

#include <atomic>
#include <memory>

#include "plugin/collnet/comm.h"
#include "plugin/common/contexts.h"
#include "plugin/log/log.h"
#include "plugin/net/devices.h"
#include "plugin/settings/settings.h"

namespace bitrail::plugin::collnet {
namespace {

Contexts<Instance>& contexts() { return Contexts<Instance>::get(); }

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
  return contexts().add(std::move(made));
}

Instance* create_shared_instance() {
  Contexts<Instance>& known = contexts();
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

Instance* find_instance(void* context) { return contexts().find(context); }

Instance* shared_instance() { return contexts().find_shared(); }

void destroy_instance(void* context) {
  const std::unique_ptr<Instance> instance = contexts().take_out(context);
  if (instance == nullptr) return;
  // NCCL is done with this communicator: nobody else touches the list.
  while (!instance->comms.empty()) close_comm(*instance->comms.begin());
}

}  // namespace bitrail::plugin::collnet
