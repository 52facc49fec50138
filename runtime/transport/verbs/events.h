// Asynchronous events of the devices: one thread for all ports of all contexts of the process.
#pragma once

#include <memory>
#include <vector>

#include "runtime/transport/verbs/device.h"

namespace bitrail::transport::verbs {

// Watches these ports from now on and until the result is destroyed. `wake_fd`: an eventfd that is
// written to whenever a port's flags changed.
class EventWatch {
 public:
  virtual ~EventWatch() = default;
};
Status watch_events(const std::vector<std::shared_ptr<Port>>& ports, int wake_fd,
                    std::unique_ptr<EventWatch>* watch);

}  // namespace bitrail::transport::verbs
