// What is told about a port: place, speed, kinds of memory.
#pragma once

#include <string>

#include "runtime/transport/verbs/device.h"

namespace bitrail::transport::verbs {

// Megabits a second of ibv_port_attr's codes; 0 for unknown ones.
double port_speed_mbps(int active_width, int active_speed);
// "down", "initializing", ...
const char* port_state_name(ibv_port_state state);
// The sysfs folder of the device's PCI function; empty where there is none.
std::string pci_path(ibv_device* device);
// The kernel lets devices reach memory of GPUs through ordinary registrations.
bool has_peer_memory(const std::string& sys = "/sys");
bool has_dmabuf(ibv_pd* pd);

// Fills port->properties and speed from its attributes.
void describe(Port* port);

}  // namespace bitrail::transport::verbs
