// Transport "ucx": the Context over a Worker.
#pragma once

#include <memory>

#include "runtime/transport/transport.h"

namespace bitrail::transport::ucx {

Status open_context(const Options& options, std::unique_ptr<Context>* context);
Availability availability();

}  // namespace bitrail::transport::ucx
