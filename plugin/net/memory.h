// Registrations, as NCCL's mhandle.
#pragma once

#include <memory>

#include "plugin/net/instance.h"

namespace bitrail::plugin {

struct Registration {
  Domain* domain = nullptr;
  std::unique_ptr<transport::Memory> memory;
};

void deregister(Registration* registration);

}  // namespace bitrail::plugin
