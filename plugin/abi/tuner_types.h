// What NCCL and a tuner plugin say to each other, whatever the version: collectives, algorithms,
// protocols, the figures of NCCL's own model.
#pragma once

#include "plugin/abi/types.h"

namespace bitrail::nccl {

enum Function : int {
  kBroadcast = 0,
  kReduce = 1,
  kAllGather = 2,
  kReduceScatter = 3,
  kAllReduce = 4,  // beyond: point to point, and what is made of it
};
inline constexpr int kFunctions = 5;

enum Algorithm : int {
  kTree = 0,
  kRing = 1,
  kCollNetDirect = 2,
  kCollNetChain = 3,
  kNvls = 4,
  kNvlsTree = 5,
  kPat = 6,
};
inline constexpr int kAlgorithms = 7;  // older releases know fewer

enum Protocol : int { kLl = 0, kLl128 = 1, kSimple = 2 };
inline constexpr int kProtocols = 3;

// The cost table is declared float** and is one array float[algorithms][protocols], microseconds.
inline constexpr float kIgnored = -1.0F;  // not available, and has to stay so
inline constexpr float kChosen = 0.0F;
inline constexpr int kMaxChannels = 64;

// From version 5 on.
struct NvlinkDomains {
  int domains, min_ranks, max_ranks;
};
static_assert(sizeof(NvlinkDomains) == 12);

// Hardware is 0 NVLink, 1 PCI, 2 network; GPUs are Volta, Ampere, Hopper, Blackwell; scales are one
// node, two, more. Microseconds and GB/s.
inline constexpr int kHardware = 3, kGenerations = 4, kScales = 3;
struct TunerConstants {
  double base_latencies[kAlgorithms][kProtocols];
  double hardware_latencies[kHardware][kAlgorithms][kProtocols];
  double max_ll[kGenerations][kScales];
  double max_ring_ll128[kGenerations][kScales];  // of a channel, as what follows
  double max_tree_ll128[kGenerations][kScales];
  double max_tree[kGenerations][kScales];
  double max_nvls_tree[kGenerations][kScales];
};
static_assert(sizeof(TunerConstants) == 1152 &&
              offsetof(TunerConstants, hardware_latencies) == 21 * 8 &&
              offsetof(TunerConstants, max_ll) == 84 * 8 &&
              offsetof(TunerConstants, max_ring_ll128) == 96 * 8 &&
              offsetof(TunerConstants, max_tree_ll128) == 108 * 8 &&
              offsetof(TunerConstants, max_tree) == 120 * 8 &&
              offsetof(TunerConstants, max_nvls_tree) == 132 * 8);

}  // namespace bitrail::nccl
