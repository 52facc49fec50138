// The devices that NCCL may use, found once: their names stay valid until the process ends.
#pragma once

#include <vector>

#include "plugin/abi/types.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

// Opens the transport to ask it. Failing leaves 0 devices and writes why; the next call tries
// again.
int find_devices();
// Those of the transport. Virtual ones, which NCCL makes of them, have the numbers behind.
int device_count();

struct Device {
  transport::DeviceProperties properties;
  std::vector<int> parts;  // of a device of the transport: itself
};
// Null when there is none with this number.
const Device* device(int index);

// A device whose connections use all of these. The same parts give the same number; a single one
// gives itself.
Status make_virtual_device(const std::vector<int>& parts, int* index);
// What a device made of these tells NCCL.
transport::DeviceProperties combined(const std::vector<transport::DeviceProperties>& parts);
// What NCCL may give as memory: the transport's, without DMA-BUF descriptors, which have no way to
// it yet.
int pointer_support(const transport::DeviceProperties& properties);

}  // namespace bitrail::plugin
