// From Status to the C API: the code goes back, the text to this thread's last error.
#pragma once

#include <exception>
#include <new>

#include "runtime/common/status.h"

namespace bitrail::api {

// Remembers the text of a failure for bitrail_last_error().
bitrail_status_t result(const Status& status);

// Runs a call's body, which returns a Status; nothing is thrown through the C API.
template <typename Body>
bitrail_status_t guarded(Body body) {
  try {
    return result(body());
  } catch (const std::bad_alloc&) {
    return result(Status(BITRAIL_ERR_NO_MEMORY, "out of memory"));
  } catch (const std::exception& error) {
    return result(failure(BITRAIL_ERR_INTERNAL, "unexpected: {}", error.what()));
  }
}

}  // namespace bitrail::api
