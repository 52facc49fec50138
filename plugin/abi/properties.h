// The properties of a device as each version lays them out. Offsets are held by assertions: a
// member that moves gives garbage lengths in NCCL, not an error.
#pragma once

#include "plugin/abi/types.h"

namespace bitrail::nccl {

struct PropertiesV6 {
  char* name;
  char* pci_path;  // sysfs; may be null
  uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
};
static_assert(sizeof(PropertiesV6) == 48 && offsetof(PropertiesV6, pointer_support) == 24 &&
              offsetof(PropertiesV6, speed_mbps) == 28 && offsetof(PropertiesV6, port) == 32 &&
              offsetof(PropertiesV6, latency_us) == 36 && offsetof(PropertiesV6, max_comms) == 40 &&
              offsetof(PropertiesV6, max_receives) == 44);

struct PropertiesV7 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType device_type;
  int device_version;
};
static_assert(sizeof(PropertiesV7) == 56 && offsetof(PropertiesV7, max_receives) == 44 &&
              offsetof(PropertiesV7, device_type) == 48 &&
              offsetof(PropertiesV7, device_version) == 52);

struct PropertiesV8 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType device_type;
  int device_version;
};
static_assert(sizeof(PropertiesV8) == 64 && offsetof(PropertiesV8, registration_is_global) == 28 &&
              offsetof(PropertiesV8, speed_mbps) == 32 && offsetof(PropertiesV8, port) == 36 &&
              offsetof(PropertiesV8, latency_us) == 40 && offsetof(PropertiesV8, max_comms) == 44 &&
              offsetof(PropertiesV8, max_receives) == 48 &&
              offsetof(PropertiesV8, device_type) == 52 &&
              offsetof(PropertiesV8, device_version) == 56);

template <int kDevices>
struct VirtualDevice {
  int count;
  int devices[kDevices];
};
using VirtualDeviceV9 = VirtualDevice<4>;
using VirtualDeviceV12 = VirtualDevice<8>;
static_assert(sizeof(VirtualDeviceV9) == 20 && sizeof(VirtualDeviceV12) == 36);

struct PropertiesV9 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType device_type;
  int device_version;
  VirtualDeviceV9 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
};
static_assert(sizeof(PropertiesV9) == 104 && offsetof(PropertiesV9, force_flush) == 32 &&
              offsetof(PropertiesV9, speed_mbps) == 36 && offsetof(PropertiesV9, port) == 40 &&
              offsetof(PropertiesV9, latency_us) == 44 && offsetof(PropertiesV9, max_comms) == 48 &&
              offsetof(PropertiesV9, max_receives) == 52 &&
              offsetof(PropertiesV9, device_type) == 56 &&
              offsetof(PropertiesV9, device_version) == 60 &&
              offsetof(PropertiesV9, virtual_device) == 64 &&
              offsetof(PropertiesV9, max_p2p_bytes) == 88 &&
              offsetof(PropertiesV9, max_collective_bytes) == 96);

struct PropertiesV11 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType device_type;
  int device_version;
  VirtualDeviceV9 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request;
};
static_assert(sizeof(PropertiesV11) == 112 && offsetof(PropertiesV11, virtual_device) == 64 &&
              offsetof(PropertiesV11, max_p2p_bytes) == 88 &&
              offsetof(PropertiesV11, max_collective_bytes) == 96 &&
              offsetof(PropertiesV11, max_multi_request) == 104);

struct PropertiesV12 {
  char* name;
  char* pci_path;
  uint64_t guid;
  int pointer_support;
  int registration_is_global;
  int force_flush;
  int speed_mbps;
  int port;
  float latency_us;
  int max_comms;
  int max_receives;
  NetDeviceType device_type;
  int device_version;
  VirtualDeviceV12 virtual_device;
  size_t max_p2p_bytes;
  size_t max_collective_bytes;
  int max_multi_request;
  int16_t rail_id, plane_id;
};
static_assert(sizeof(PropertiesV12) == 128 && offsetof(PropertiesV12, force_flush) == 32 &&
              offsetof(PropertiesV12, speed_mbps) == 36 && offsetof(PropertiesV12, port) == 40 &&
              offsetof(PropertiesV12, latency_us) == 44 &&
              offsetof(PropertiesV12, max_comms) == 48 &&
              offsetof(PropertiesV12, max_receives) == 52 &&
              offsetof(PropertiesV12, device_type) == 56 &&
              offsetof(PropertiesV12, device_version) == 60 &&
              offsetof(PropertiesV12, virtual_device) == 64 &&
              offsetof(PropertiesV12, max_p2p_bytes) == 104 &&
              offsetof(PropertiesV12, max_collective_bytes) == 112 &&
              offsetof(PropertiesV12, max_multi_request) == 120 &&
              offsetof(PropertiesV12, rail_id) == 124 && offsetof(PropertiesV12, plane_id) == 126);

}  // namespace bitrail::nccl
