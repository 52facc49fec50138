#include "runtime/transport/verbs/properties.h"

#include <endian.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <fstream>

namespace bitrail::transport::verbs {

double port_speed_mbps(int active_width, int active_speed) {
  struct Code {
    int code;
    double value;
  };
  constexpr Code kLanes[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  // SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR: megabits a second of a lane.
  constexpr Code kSpeeds[] = {{1, 2500},      {2, 5000},    {4, 10'000},  {8, 10'000},
                              {16, 14'062.5}, {32, 25'000}, {64, 50'000}, {128, 100'000}};
  double lanes = 0, speed = 0;
  for (const Code& each : kLanes) {
    if (each.code == active_width) lanes = each.value;
  }
  for (const Code& each : kSpeeds) {
    if (each.code == active_speed) speed = each.value;
  }
  return lanes * speed;
}

const char* port_state_name(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "initializing (no subnet manager has configured it)";
    case IBV_PORT_ARMED:
      return "armed, not yet active";
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ACTIVE_DEFER:
      return "active, but deferred";
    default:
      return "in no usable state";
  }
}

std::string pci_path(ibv_device* device) {
  char path[PATH_MAX];
  return table().pci_path(device, path, sizeof(path)) == 0 ? path : "";
}

bool has_peer_memory(const std::string& sys) {
  for (const char* module :
       {"/module/nvidia_peermem/version", "/kernel/mm/memory_peers/nv_mem/version",
        "/kernel/mm/memory_peers/nv_mem_nc/version", "/kernel/mm/memory_peers/amdkfd/version"}) {
    if (access((sys + module).c_str(), F_OK) == 0) return true;
  }
  return false;
}

// A descriptor that is none tells: EBADF where the call exists down to the driver.
bool has_dmabuf(ibv_pd* pd) {
  if (table().reg_dmabuf_mr == nullptr) return false;
  ibv_mr* mr = table().reg_dmabuf_mr(pd, 0, 4096, 0, -1, 0);
  if (mr != nullptr) {
    table().dereg_mr(mr);
    return true;
  }
  return errno != EOPNOTSUPP && errno != EPROTONOSUPPORT && errno != ENOSYS;
}

void describe(Port* port) {
  port->speed_mbps = port_speed_mbps(port->attributes.active_width, port->attributes.active_speed);
  DeviceProperties& told = port->properties;
  told.name = port->name;
  told.pci_path = pci_path(port->context->device);
  // Both ports of one card share it: a rail is guid and port.
  told.guid = be64toh(port->device_attributes.node_guid);
  told.port = port->number;
  told.numa_node = -1;
  if (!told.pci_path.empty()) std::ifstream(told.pci_path + "/numa_node") >> told.numa_node;
  told.speed_mbps = port->speed_mbps;
  told.latency_us = port->roce ? 2.5 : 1.3;
  told.memory_types = kHost;
  if (has_peer_memory()) told.memory_types |= kCuda;
  port->dmabuf = has_dmabuf(port->pd);
  told.max_grouped_receives = kMaxGroupedReceives;
  told.max_message_bytes = port->attributes.max_msg_sz;
  told.registration_is_global = true;
}

}  // namespace bitrail::transport::verbs
