#include "runtime/topology/live.h"

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "runtime/topology/hwloc_machine.h"

namespace bitrail::topology {
namespace {

// The number that the file begins with; 0 if there is none.
double leading_number(const std::string& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value) || !(value > 0)) return 0;
  return value;
}

// Mbit/s. "200 Gb/sec (4X HDR)" of an RDMA port, "10000" of an Ethernet interface.
double speed_of(const Port& port) {
  if (port.rdma)
    return 1000 * leading_number("/sys/class/infiniband/" + port.name + "/ports/1/rate");
  return leading_number("/sys/class/net/" + port.name + "/speed");
}

}  // namespace

Status read_live(Machine* machine) {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return failure(BITRAIL_ERR_SYSTEM, "hwloc does not start");
  const HwlocTopology topology(made);
  if (hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL) != 0 ||
      hwloc_topology_load(made) != 0)
    return failure(BITRAIL_ERR_SYSTEM, "hwloc does not understand this machine");
  BITRAIL_TRY(machine_of(made, machine));
  std::array<char, 256> host = {};
  if (gethostname(host.data(), host.size() - 1) == 0) machine->name = host.data();
  for (Port& port : machine->ports) port.mbps = speed_of(port);
  return {};
}

}  // namespace bitrail::topology
