#include "tests/plugin/driver/net.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <mutex>

#include <fmt/core.h>

#include "tests/plugin/driver/table_net.h"

namespace bitrail::test {
namespace {

std::mutex g_mutex;
std::vector<std::string> g_warnings;
std::atomic<int> g_started{0}, g_stopped{0};

}  // namespace

void logger(nccl::LogLevel level, unsigned long /*flags*/, const char* /*file*/, int /*line*/,
            const char* format, ...) {
  if (level != nccl::kLogWarn) return;
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  const std::lock_guard lock(g_mutex);
  g_warnings.emplace_back(text);
}

nccl::Result profiler(void** event, int type, void* /*parent*/, int64_t /*id*/, void* data) {
  if (event == nullptr) return nccl::kInvalidArgument;
  if (type == nccl::kProfilerStart && data != nullptr) {
    *event = event;
    g_started++;
  } else if (type == nccl::kProfilerStop && *event == event) {
    g_stopped++;
  }
  return nccl::kSuccess;
}

std::vector<std::string> take_warnings() {
  const std::lock_guard lock(g_mutex);
  return std::move(g_warnings);
}

Events profiler_events() { return {g_started, g_stopped}; }

File::File(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr) (void)fprintf(stderr, "%s\n", dlerror());
}

File::~File() {
  if (handle_ != nullptr) dlclose(handle_);
}

std::unique_ptr<Net> File::net(int version) const {
  if (handle_ == nullptr) return nullptr;
  const std::string symbol = fmt::format("ncclNetPlugin_v{}", version);
  const void* table = dlsym(handle_, symbol.c_str());
  if (table == nullptr) {
    (void)fprintf(stderr, "%s\n", dlerror());
    return nullptr;
  }
  switch (version) {
    case 6:
      return make_table_net<nccl::NetV6, nccl::PropertiesV6>(6, table);
    case 7:
      return make_table_net<nccl::NetV7, nccl::PropertiesV7>(7, table);
    case 8:
      return make_table_net<nccl::NetV8, nccl::PropertiesV8>(8, table);
    case 9:
      return make_table_net<nccl::NetV9, nccl::PropertiesV9>(9, table);
    case 10:
      return make_table_net<nccl::NetV10, nccl::PropertiesV9>(10, table);
    case 11:
      return make_table_net<nccl::NetV11, nccl::PropertiesV11>(11, table);
    case 12:
      return make_table_net<nccl::NetV12, nccl::PropertiesV12>(12, table);
    default:
      return nullptr;
  }
}

}  // namespace bitrail::test
