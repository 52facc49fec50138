// What one of NCCL's own algorithms takes: latency by hops, and bytes over the narrower of the
// links inside a node and between nodes. Nothing here is measured; it compares algorithms.
#pragma once

#include <array>
#include <cstdint>

#include "plugin/abi/tuner_types.h"

namespace bitrail::plugin::tuner {

// Microseconds of an algorithm's start and of one hop, and what the LL protocol carries at most.
struct Figures {
  using Table = std::array<std::array<double, nccl::kProtocols>, nccl::kAlgorithms>;
  Table start{}, nvlink_hop{}, pci_hop{}, network_hop{};
  std::array<std::array<double, nccl::kScales>, nccl::kGenerations> max_ll{};
};
// NCCL's figures as of 2.28.
const Figures& standard_figures();
// Those that NCCL hands over (null: none); the standard ones for what is no time or bandwidth.
Figures figures_of(const nccl::TunerConstants* constants);

// Where a communicator runs.
struct System {
  int64_t ranks = 1, nodes = 1;
  int64_t local = 1;            // ranks of the largest node
  bool nvlink = false;          // the way between GPUs of a node
  double inside_gbs = 12;       // of a GPU to its neighbours in the node, one direction
  double between_gbs = 12;      // of a node to others, all its ports together
  bool nvlink_between = false;  // one NVLink domain holds all nodes
  int sm = 0;                   // compute capability; 0: not known
  Figures figures = standard_figures();
};

// Microseconds of a collective whose larger buffer has `bytes`, `pipe_ops` of them in a row.
// Negative where the algorithm does not exist for it, or is not known. Grows with the bytes.
double predict_us(const System& system, int function, int algorithm, int protocol, uint64_t bytes,
                  int pipe_ops);

}  // namespace bitrail::plugin::tuner
