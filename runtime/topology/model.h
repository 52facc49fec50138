// What a machine is made of, as far as collectives care: NUMA nodes, the PCI tree, GPUs, network
// ports, NVLink. And a cluster of machines. Plain data; all references are indices into the
// vectors of the same Machine.
//
// A Machine that comes from a reader has passed check() (check.h): indices are in range, the PCI
// tree is a tree, names are distinct. Bandwidths are GB/s in one direction, in NCCL's measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bitrail::topology {

struct Numa {
  int id = 0;        // the system's number; -1: not known, and devices below it belong to no node
  int package = -1;  // socket; -1: not known
  std::string cpus;  // list "0-3,8-11" or NCCL's mask, for people
  std::string arch;  // "x86_64", "arm64", "ppc64"; empty: not known
  std::string vendor;
  int family = -1, model = -1;
};

enum class PciKind { bridge, gpu, nic, nvswitch, other };

// One device or one whole PCI switch.
struct Pci {
  std::string busid;  // "0000:4f:00.0"
  int parent = -1;    // the switch above it; -1: at the host bridge
  int numa = 0;
  uint32_t class_code = 0;  // 0x030200; 0: not known
  PciKind kind = PciKind::other;
  double bandwidth = 0;  // of the link to the parent
};

struct Gpu {
  std::string name;
  int pci = 0;
  int rank = -1;             // if the description says
  int sm = 0;                // compute capability, 90; 0: not known
  double c2c_bandwidth = 0;  // to the processor beside PCI; 0: none
};

// A port of a network card: what carries one rail.
struct Port {
  std::string name;
  int pci = -1;     // -1: the description says only the NUMA node
  int numa = 0;     // of the PCI device if there is one
  int port = 0;     // number on the card; 0: not known
  double mbps = 0;  // 0: not known
  uint64_t guid = 0;
  bool rdma = true;  // false: plain Ethernet of a machine whose RDMA devices are known
};

// What a GPU's NVLinks lead to.
enum class LinkTarget { gpu, nvswitch, processor };

// Links of one GPU to one target. Both GPUs of a pair list their side.
struct NvLink {
  int gpu = 0;
  LinkTarget target = LinkTarget::gpu;
  int peer = 0;          // index of the GPU, NVSwitch or NUMA node
  int count = 0;         // 0: not known
  double bandwidth = 0;  // of all of them
};

struct Machine {
  std::string name;
  std::vector<Numa> numas;
  std::vector<Pci> pci;
  std::vector<Gpu> gpus;
  std::vector<Port> ports;
  std::vector<std::string> nvswitches;
  std::vector<NvLink> links;
  std::vector<std::string> notes;  // what its source left open, for people: one sentence each
};

// Machines that are alike are stored once.
struct Cluster {
  std::vector<Machine> kinds;
  std::vector<int> nodes;          // kind of each node
  bool one_nvlink_domain = false;  // NVSwitches join the GPUs of all nodes
};

// Where something is attached: a PCI device, or only a NUMA node (pci = -1).
struct Place {
  int pci = -1;
  int numa = 0;
};

inline Place place(const Machine& machine, const Gpu& gpu) {
  return {gpu.pci, machine.pci[static_cast<size_t>(gpu.pci)].numa};
}
inline Place place(const Port& port) { return {port.pci, port.numa}; }

// Bounds that every reader keeps, so that hostile input costs little.
inline constexpr size_t kMaxNumas = 1024, kMaxPci = 16'384, kMaxGpus = 256, kMaxPorts = 256,
                        kMaxSwitches = 1024, kMaxLinks = 16'384, kMaxNodes = 65'536, kMaxName = 255,
                        kMaxNotes = 64;
inline constexpr int kMaxPciDepth = 64;

}  // namespace bitrail::topology
