// The way between two places of a machine: over PCI, over NVLink, or through a helping GPU.
#pragma once

#include "runtime/topology/model.h"
#include "runtime/topology/path.h"

namespace bitrail::topology {

struct Route {
  Path path = Path::dis;
  double bandwidth = 0;  // of the narrowest link, GB/s
  int switches = 0;      // PCI switches crossed
  int via = -1;          // GPU that forwards (NVB, PXN)
};

// By PCI and processors alone. LOC for one and the same device.
Route pci_route(const Machine& machine, Place from, Place to);

// The best route of each GPU.
//
// To a GPU: NVLink where there is some, NVB where another GPU has links to both, PCI otherwise.
// To a port: PCI; P2C where the GPU reaches its processor by C2C and the port hangs there; PXN over
// the NVLink of a GPU that has the port behind its own switches, where that is faster or where the
// GPU's own way would leave its switches. The port's speed limits the bandwidth.
struct Routes {
  size_t gpus = 0, ports = 0;
  std::vector<Route> between, out;

  const Route& to_gpu(size_t from, size_t to) const { return between[from * gpus + to]; }
  const Route& to_port(size_t from, size_t port) const { return out[from * ports + port]; }
};
Routes find_routes(const Machine& machine);

// Between GPUs of two nodes. The bandwidth is for others to say.
Path between_nodes(const Cluster& cluster);

}  // namespace bitrail::topology
