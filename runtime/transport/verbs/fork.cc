#include "runtime/transport/verbs/fork.h"

#include <mutex>

#include "runtime/trace/log.h"
#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/table.h"

namespace bitrail::transport::verbs {

void prepare_fork() {
  static std::mutex mutex;
  static bool done = false;
  static unsigned generation = 0;
  const std::lock_guard lock(mutex);
  if (done && generation == table_generation()) return;
  done = true;
  generation = table_generation();
  const int error = table().fork_init();
  if (error != 0) {
    log::warn(
        "children of this process must not touch registered memory: {}; open the transport before "
        "other libraries register memory",
        errno_text("ibv_fork_init", error));
  }
}

}  // namespace bitrail::transport::verbs
