// What a communicator counted, as JSON (BITRAIL_COUNTERS).
#pragma once

#include <string>

#include "runtime/api/comm.h"

namespace bitrail::api {

// Appends one line, a JSON object with the rank, to the file when a communicator ends; "%r" in the
// name becomes the rank.
void write_counters(const bitrail_comm& comm);

}  // namespace bitrail::api
