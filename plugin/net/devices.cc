#include "plugin/net/devices.h"

#include <mutex>
#include <vector>

#include "plugin/log/log.h"
#include "plugin/settings/settings.h"

namespace bitrail::plugin {
namespace {

struct List {
  std::mutex mutex;
  std::vector<transport::DeviceProperties> devices;  // never changed once filled
};

List& list() {
  static auto* object = new List;
  return *object;
}

Status ask(std::vector<transport::DeviceProperties>* devices) {
  config::Settings settings;
  BITRAIL_TRY(load_settings(&settings));
  transport::Options options;
  transport_options(settings, 0, nccl::kUndefined, &options);
  std::unique_ptr<transport::Context> context;
  BITRAIL_TRY(transport::open(settings.transport, options, &context));
  for (int i = 0; i < context->devices(); i++) {
    devices->push_back(context->device(i));
    info("init", "device {}: {} over {}, {:.0f} Mbit/s", i, devices->back().name, context->name(),
         devices->back().speed_mbps);
  }
  return {};
}

}  // namespace

int find_devices() {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  if (known.devices.empty()) {
    std::vector<transport::DeviceProperties> found;
    const Status status = ask(&found);
    if (!status.ok()) warn("init", "no device: {}", status.text());
    known.devices = std::move(found);
  }
  return static_cast<int>(known.devices.size());
}

int device_count() {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  return static_cast<int>(known.devices.size());
}

const transport::DeviceProperties* device(int index) {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  if (index < 0 || static_cast<size_t>(index) >= known.devices.size()) return nullptr;
  return &known.devices[static_cast<size_t>(index)];
}

int pointer_support(const transport::DeviceProperties& properties) {
  return static_cast<int>(properties.memory_types & (nccl::kPointerHost | nccl::kPointerCuda));
}

}  // namespace bitrail::plugin
