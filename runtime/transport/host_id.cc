#include "runtime/transport/host_id.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <initializer_list>

namespace bitrail::transport {
namespace {

constexpr uint64_t kFnvOffset = 0xcbf29ce484222325ULL;

// FNV-1a.
uint64_t mix(uint64_t hash, const void* data, size_t bytes) {
  const auto* p = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 0x100000001b3ULL;
  return hash;
}

}  // namespace

HostId host_id() {
  HostId id;
  char text[128];
  ssize_t bytes = 0;
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    bytes = ::read(fd, text, sizeof(text));
    ::close(fd);
  }
  if (bytes <= 0) {  // without /proc: the host's name has to do
    gethostname(text, sizeof(text));
    text[sizeof(text) - 1] = 0;
    for (bytes = 0; text[bytes] != 0;) bytes++;
  }
  id.boot = mix(kFnvOffset, text, static_cast<size_t>(bytes));
  id.namespaces = kFnvOffset;
  for (const char* path : {"/proc/self/ns/net", "/proc/self/ns/ipc", "/proc/self/ns/pid"}) {
    struct stat info {};
    if (stat(path, &info) != 0) continue;
    const uint64_t inode = info.st_ino;
    id.namespaces = mix(id.namespaces, &inode, sizeof(inode));
  }
  return id;
}

}  // namespace bitrail::transport
