#include "plugin/net/devices.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "plugin/log/log.h"
#include "plugin/settings/settings.h"

namespace bitrail::plugin {
namespace {

struct List {
  std::mutex mutex;
  std::deque<Device> devices;  // never changed once there
  size_t physical = 0;
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
  if (known.physical == 0) {
    std::vector<transport::DeviceProperties> found;
    const Status status = ask(&found);
    if (!status.ok()) warn("init", "no device: {}", status.text());
    for (transport::DeviceProperties& properties : found) {
      known.devices.push_back({std::move(properties), {static_cast<int>(known.devices.size())}});
    }
    known.physical = found.size();
  }
  return static_cast<int>(known.physical);
}

int device_count() {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  return static_cast<int>(known.physical);
}

const Device* device(int index) {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  if (index < 0 || static_cast<size_t>(index) >= known.devices.size()) return nullptr;
  return &known.devices[static_cast<size_t>(index)];
}

transport::DeviceProperties combined(const std::vector<transport::DeviceProperties>& parts) {
  transport::DeviceProperties whole = parts.front();
  for (size_t i = 1; i < parts.size(); i++) {
    const transport::DeviceProperties& part = parts[i];
    whole.name += "+" + part.name;
    whole.speed_mbps += part.speed_mbps;
    whole.latency_us = std::max(whole.latency_us, part.latency_us);
    whole.memory_types &= part.memory_types;
    whole.max_grouped_receives = std::min(whole.max_grouped_receives, part.max_grouped_receives);
    whole.max_message_bytes = std::min(whole.max_message_bytes, part.max_message_bytes);
    whole.registration_is_global = whole.registration_is_global && part.registration_is_global;
  }
  return whole;
}

Status make_virtual_device(const std::vector<int>& parts, int* index) {
  List& known = list();
  const std::lock_guard lock(known.mutex);
  std::vector<transport::DeviceProperties> properties;
  for (const int part : parts) {
    const bool there = part >= 0 && static_cast<size_t>(part) < known.physical;
    if (!there || std::count(parts.begin(), parts.end(), part) != 1) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                     "device {} cannot be a part: there are {}, each is used once", part,
                     known.physical);
    }
    properties.push_back(known.devices[static_cast<size_t>(part)].properties);
  }
  if (parts.empty() || parts.size() > transport::kMaxCombined) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "a device of {} parts, allowed are 1 to {}",
                   parts.size(), transport::kMaxCombined);
  }
  const auto found = std::find_if(known.devices.begin(), known.devices.end(),
                                  [&parts](const Device& entry) { return entry.parts == parts; });
  *index = static_cast<int>(found - known.devices.begin());
  if (found != known.devices.end()) return {};
  known.devices.push_back({combined(properties), parts});
  const transport::DeviceProperties& made = known.devices.back().properties;
  info("makeVDevice", "device {}: {}, {:.0f} Mbit/s", *index, made.name, made.speed_mbps);
  return {};
}

int pointer_support(const transport::DeviceProperties& properties) {
  return static_cast<int>(properties.memory_types & (nccl::kPointerHost | nccl::kPointerCuda));
}

}  // namespace bitrail::plugin
