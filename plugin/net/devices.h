// The devices that NCCL may use, found once: their names stay valid until the process ends.
#pragma once

#include "plugin/abi/types.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

// Opens the transport to ask it. Failing leaves 0 devices and writes why; the next call tries
// again.
int find_devices();
int device_count();
// Null when there is none with this number.
const transport::DeviceProperties* device(int index);
// What NCCL may give as memory: the transport's, without DMA-BUF descriptors, which have no way to
// it yet.
int pointer_support(const transport::DeviceProperties& properties);

}  // namespace bitrail::plugin
