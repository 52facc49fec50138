// What an errno or a completion's status means here, and what to do about it.
#pragma once

#include <infiniband/verbs.h>

#include <string>

namespace bitrail::transport::verbs {

// "Connection timed out: the peer's port does not answer; see ..." for errors of modify_qp,
// create_qp and registration. `call` is the function's name.
std::string errno_text(const char* call, int error);
// "transport retry counter exceeded (12): ...".
std::string completion_text(ibv_wc_status status, uint32_t vendor_error);

}  // namespace bitrail::transport::verbs
