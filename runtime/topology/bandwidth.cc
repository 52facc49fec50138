#include "runtime/topology/bandwidth.h"

namespace bitrail::topology {
namespace {

constexpr double kPci3x16 = 12;
constexpr double kPci3x16OfHwloc = 15.753846;

}  // namespace

double pci_bandwidth(double transfers, int lanes) {
  if (lanes <= 0) lanes = 16;
  if (transfers == 0) transfers = 8;
  // Hundreds of Mbit/s that a lane carries.
  struct Generation {
    double transfers, lane;
  };
  for (const Generation& g : {Generation{2.5, 15}, Generation{5, 30}, Generation{8, 60},
                              Generation{16, 120}, Generation{32, 240}, Generation{64, 480}})
    if (g.transfers == transfers) return g.lane * lanes / 80;
  return 0;
}

double pci_bandwidth_of_hwloc(double speed) {
  return speed > 0 ? speed * kPci3x16 / kPci3x16OfHwloc : kPci3x16;
}

double nvlink_bandwidth(int sm) {
  if (sm >= 100) return 40.1;
  if (sm >= 90) return 20.6;
  if (sm == 86) return 12;
  if (sm >= 70 || sm == 0) return 20;
  return 18;
}

double xgmi_bandwidth(int gfx) {
  if (gfx >= 940) return 48;
  if (gfx >= 910) return 36;
  return 24;
}

double socket_bandwidth(const Numa& numa) {
  if (numa.arch == "ppc64") return 32;
  if (numa.arch == "arm64") return 6;
  if (numa.vendor == "AuthenticAMD") {
    // Family 0x19 and 0x1a, also as NCCL writes them (base and extended part overlaid).
    if (numa.family == 25 || numa.family == 175) return 24;
    if (numa.family == 26 || numa.family == 191) return 32;
    return 16;
  }
  if (numa.vendor == "GenuineIntel" && numa.family == 6) {
    if (numa.model >= 0xcf) return 40;
    if (numa.model >= 0x8f) return 22;
    if (numa.model >= 0x55) return 10;
  }
  return 6;
}

}  // namespace bitrail::topology
