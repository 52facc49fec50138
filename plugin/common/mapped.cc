#include "plugin/common/mapped.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace bitrail::plugin {

bool mapped(void* data, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  uintptr_t end = 0;
  if (__builtin_add_overflow(begin, bytes, &end)) return false;
  const uintptr_t first = begin / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the page that `data` is in
  return msync(reinterpret_cast<void*>(first), end - first, MS_ASYNC) == 0 || errno != ENOMEM;
}

}  // namespace bitrail::plugin
