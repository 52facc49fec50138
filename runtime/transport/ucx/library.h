// What this process asks of the UCX library: its configuration, quiet logs, no signal handlers.
#pragma once

#include <ucp/api/ucp.h>

#include <string>

#include "runtime/common/status.h"

namespace bitrail::transport::ucx {

// UCX's messages go to BitRail's log (level INFO) while a context is open; its handlers for SIGSEGV
// and the like are removed unless UCX_HANDLE_ERRORS or UCX_ERROR_SIGNALS asks for them.
void acquire_library();
void release_library();

// `interface`: the one TCP may use, empty for all. *has_cma: UCX may copy between processes.
// *transports: "tcp+sysv+posix+cma".
Status create_context(const std::string& interface, ucp_context_h* context, bool* has_cma,
                      std::string* transports);

std::string version();

}  // namespace bitrail::transport::ucx
