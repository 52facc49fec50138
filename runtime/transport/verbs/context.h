// Transport "verbs": the Context over a Worker.
#pragma once

#include <memory>

#include "runtime/transport/transport.h"

namespace bitrail::transport::verbs {

Status open_context(const Options& options, std::unique_ptr<Context>* context);
// Says which ports are usable, or why none is.
Availability availability(const IbOptions& ib);

}  // namespace bitrail::transport::verbs
