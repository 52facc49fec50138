#include "tools/bitrail/plugin_info.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdarg>
#include <cstdio>

#include "plugin/abi/net_v10.h"
#include "plugin/abi/net_v11.h"
#include "plugin/abi/net_v12.h"
#include "plugin/abi/net_v6.h"
#include "plugin/abi/net_v7.h"
#include "plugin/abi/net_v8.h"
#include "plugin/abi/net_v9.h"

namespace bitrail::tool {
namespace {

constexpr int kOldest = 6, kNewest = 12;
constexpr int kOldestTuner = 2, kNewestTuner = 6;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

void line(const std::string& name, const std::string& value) {
  print(fmt::format("  {:<24} {}\n", name, value));
}

__attribute__((format(printf, 5, 6))) void logger(nccl::LogLevel level, unsigned long /*flags*/,
                                                  const char* /*file*/, int /*line*/,
                                                  const char* format, ...) {
  if (level != nccl::kLogWarn) return;
  va_list arguments;
  va_start(arguments, format);
  (void)std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  (void)std::fputc('\n', stderr);
}

std::string memory_types(int bits) {
  std::string text;
  if ((bits & nccl::kPointerHost) != 0) text += " host";
  if ((bits & nccl::kPointerCuda) != 0) text += " CUDA";
  if ((bits & nccl::kPointerDmaBuf) != 0) text += " DMA-BUF";
  return text.empty() ? " none" : text;
}

template <typename Properties>
void show_device(int index, const Properties& device) {
  print(fmt::format("\nDevice {}: {}\n", index, device.name == nullptr ? "?" : device.name));
  line("PCI path", device.pci_path == nullptr ? "none" : device.pci_path);
  line("GUID, port", fmt::format("{:#018x}, {}", device.guid, device.port));
  line("memory", memory_types(device.pointer_support).substr(1));
  line("speed, latency", fmt::format("{} Mbit/s, {:.2f} us", device.speed_mbps, device.latency_us));
  line("connections",
       fmt::format("{}, receives in a group {}", device.max_comms, device.max_receives));
  if constexpr (requires { device.registration_is_global; }) {
    line("registrations", device.registration_is_global != 0 ? "for all connections" : "for one");
  }
  if constexpr (requires { device.max_p2p_bytes; }) {
    line("largest message", fmt::format("{} bytes", device.max_p2p_bytes));
  }
}

// Through the table of one version, as NCCL would.
template <typename Table, typename Properties>
int ask(const void* symbol) {
  const auto* table = static_cast<const Table*>(symbol);
  [[maybe_unused]] void* context = nullptr;
  nccl::Result result = nccl::kSuccess;
  if constexpr (requires { table->finalize; }) {
    nccl::CommConfig config{nccl::kUndefined};
    result = table->init(&context, 0, &config, logger, nullptr);
  } else if constexpr (std::is_same_v<Table, nccl::NetV10>) {
    result = table->init(logger, nullptr);
  } else {
    result = table->init(logger);
  }
  int count = 0;
  if (result == nccl::kSuccess) result = table->devices(&count);
  for (int i = 0; result == nccl::kSuccess && i < count; i++) {
    Properties device{};
    result = table->get_properties(i, &device);
    if (result == nccl::kSuccess) show_device(i, device);
  }
  if (result == nccl::kSuccess && count == 0) print("\nNo device: NCCL would pass it by.\n");
  if constexpr (requires { table->finalize; }) (void)table->finalize(context);
  if (result == nccl::kSuccess) return 0;
  (void)std::fprintf(stderr, "bitrail info: the plugin gives code %d\n", result);
  return 1;
}

int ask_version(int version, const void* table) {
  switch (version) {
    case 6:
      return ask<nccl::NetV6, nccl::PropertiesV6>(table);
    case 7:
      return ask<nccl::NetV7, nccl::PropertiesV7>(table);
    case 8:
      return ask<nccl::NetV8, nccl::PropertiesV8>(table);
    case 9:
      return ask<nccl::NetV9, nccl::PropertiesV9>(table);
    case 10:
      return ask<nccl::NetV10, nccl::PropertiesV9>(table);
    case 11:
      return ask<nccl::NetV11, nccl::PropertiesV11>(table);
    default:
      return ask<nccl::NetV12, nccl::PropertiesV12>(table);
  }
}

// " 2 3 4"; empty where the file has none.
std::string tuner_versions(void* handle) {
  std::string versions;
  for (int v = kOldestTuner; v <= kNewestTuner; v++) {
    const std::string symbol = fmt::format("ncclTunerPlugin_v{}", v);
    if (dlsym(handle, symbol.c_str()) != nullptr) versions += fmt::format(" {}", v);
  }
  return versions;
}

}  // namespace

int show_plugin(const std::string& file) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    (void)std::fprintf(stderr, "bitrail info: %s\n", dlerror());
    return 1;
  }
  std::string versions;
  const void* newest = nullptr;
  int version = 0;
  for (int v = kNewest; v >= kOldest; v--) {
    const void* table = dlsym(handle, fmt::format("ncclNetPlugin_v{}", v).c_str());
    if (table == nullptr) continue;
    if (newest == nullptr) {
      newest = table;
      version = v;
    }
    versions.insert(0, fmt::format(" {}", v));
  }
  int code = 1;
  if (newest == nullptr) {
    (void)std::fprintf(stderr, "bitrail info: %s has no ncclNetPlugin_v%d to _v%d\n", file.c_str(),
                       kOldest, kNewest);
  } else {
    // The name is the first member of every version.
    print(fmt::format("{}\n", file));
    line("name", *static_cast<const char* const*>(newest));
    line("net versions", versions.substr(1));
    const std::string tuners = tuner_versions(handle);
    if (!tuners.empty()) line("tuner versions", tuners.substr(1));
    code = ask_version(version, newest);
  }
  dlclose(handle);
  return code;
}

}  // namespace bitrail::tool
