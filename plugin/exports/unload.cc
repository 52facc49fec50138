// The end of the file: reaps what NCCL left half open.
//
// NCCL unloads a plugin with its last communicator; the file is linked to stay all the same
// (nodelete), because UCX keeps pointers to whoever uses it. So this runs when the process ends,
// maybe while NCCL's threads still work on communicators that nobody destroyed.
#include <unistd.h>

#include "plugin/net/instance.h"

namespace {

const pid_t g_owner = getpid();  // a child by fork has none of the threads

__attribute__((destructor)) void reap() {
  if (getpid() == g_owner) bitrail::plugin::reap_idle_instances();
}

}  // namespace
