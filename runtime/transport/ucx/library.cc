#include "runtime/transport/ucx/library.h"

#include <dirent.h>
#include <ucs/debug/debug.h>
#include <ucs/debug/log_def.h>

#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "runtime/trace/log.h"

namespace bitrail::transport::ucx {
namespace {

std::atomic<int> g_users{0};
std::once_flag g_once;

ucs_log_func_rc_t to_our_log(const char* /*file*/, unsigned /*line*/, const char* /*function*/,
                             ucs_log_level_t level, const ucs_log_component_config_t* /*component*/,
                             const char* format, va_list arguments) {
  if (g_users.load(std::memory_order_relaxed) == 0) return UCS_LOG_FUNC_RC_CONTINUE;
  if (level > UCS_LOG_LEVEL_WARN || level == UCS_LOG_LEVEL_FATAL) return UCS_LOG_FUNC_RC_CONTINUE;
  if (log::enabled(log::Level::info)) {
    char text[512];
    va_list copy;
    va_copy(copy, arguments);
    vsnprintf(text, sizeof(text), format, copy);
    va_end(copy);
    log::info("UCX: {}", text);
  }
  return UCS_LOG_FUNC_RC_STOP;
}

// TCP keeps to `interface`; RDMA ports stay allowed.
std::string network_devices(const std::string& interface) {
  std::string list = interface;
  DIR* directory = opendir("/sys/class/infiniband");
  if (directory == nullptr) return list;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] == '.') continue;
    list += fmt::format(",{}:1", static_cast<const char*>(entry->d_name));
  }
  closedir(directory);
  return list;
}

// The transports' names as UCX prints them: "# resource 3 : md 2 dev 1 flags -- sysv/memory".
std::string list_transports(ucp_context_h context) {
  char* text = nullptr;
  size_t bytes = 0;
  FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_context_print_info(context, stream);
  fclose(stream);
  const std::string info(text, bytes);
  free(text);
  std::string names;
  for (const char* name : {"rc_mlx5", "rc_verbs", "dc_mlx5", "ud_mlx5", "ud_verbs", "tcp", "sysv",
                           "posix", "xpmem", "knem", "cma"}) {
    if (info.find(fmt::format(" {}/", name)) == std::string::npos) continue;
    if (!names.empty()) names += '+';
    names += name;
  }
  return names;
}

}  // namespace

void acquire_library() {
  g_users++;
  std::call_once(g_once, [] {
    ucs_log_push_handler(to_our_log);
    if (getenv("UCX_HANDLE_ERRORS") == nullptr && getenv("UCX_ERROR_SIGNALS") == nullptr) {
      for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) {
        ucs_debug_disable_signal(signal);
      }
    }
  });
}

void release_library() { g_users--; }

Status create_context(const std::string& interface, ucp_context_h* context, bool* has_cma,
                      std::string* transports) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX refuses its configuration (UCX_* variables): {}",
                   ucs_status_string(status));
  }
  // Only the receiving process writes into receive buffers, so that it can stop doing so.
  ucp_config_modify(config, "RNDV_SCHEME", "get_zcopy");
  if (!interface.empty() && getenv("UCX_NET_DEVICES") == nullptr) {
    ucp_config_modify(config, "NET_DEVICES", network_devices(interface).c_str());
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "bitrail";
  status = ucp_init(&params, config, context);
  ucp_config_release(config);
  if (status != UCS_OK) {
    return failure(BITRAIL_ERR_SYSTEM, "UCX does not start: {}; see UCX_TLS, UCX_NET_DEVICES",
                   ucs_status_string(status));
  }
  *transports = list_transports(*context);
  *has_cma = transports->find("cma") != std::string::npos;
  return {};
}

std::string version() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return fmt::format("{}.{}.{}", major, minor, release);
}

}  // namespace bitrail::transport::ucx
