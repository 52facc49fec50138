// Schedules of a whole world, and bindings to check them at.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/planner/registry.h"
#include "runtime/schedule/schedule.h"

namespace bitrail::test {

inline std::vector<schedule::Schedule> build_world(const algorithms::Algorithm& algorithm,
                                                   algorithms::Request request) {
  std::vector<schedule::Schedule> ranks;
  for (request.rank = 0; request.rank < request.world_size; request.rank++)
    ranks.push_back(algorithm.build(request));
  return ranks;
}

inline bool is_onebit(schedule::Collective collective) {
  return collective >= schedule::Collective::onebit_allreduce;
}

// A request as the planner hands it to a builder.
inline algorithms::Request make_request(schedule::Collective collective, int world_size,
                                        uint32_t pieces) {
  algorithms::Request request;
  request.collective = collective;
  request.world_size = world_size;
  request.pieces = pieces;
  return request;
}

// `count` elements of the caller, as the engine would bind them: whole for allreduce and broadcast,
// count a rank for the scattering ones, padded for the 1-bit ones.
inline schedule::Binding bind(schedule::Collective collective, int world_size, uint64_t count,
                              uint64_t quantum = 1) {
  schedule::Binding binding;
  const auto world = static_cast<uint64_t>(world_size);
  binding.quantum = quantum;
  binding.piece_quantum = quantum;
  switch (collective) {
    case schedule::Collective::reduce_scatter:
    case schedule::Collective::allgather:
    case schedule::Collective::alltoall:
      binding.quantum = 1;
      count *= world;
      break;
    case schedule::Collective::onebit_allreduce:
    case schedule::Collective::onebit_reduce_scatter:
    case schedule::Collective::onebit_allgather: {
      constexpr uint64_t kGroup = 8;  // the smallest block of whole bytes
      binding.quantum = binding.piece_quantum = binding.group = kGroup;
      count = (count + kGroup * world - 1) / (kGroup * world) * (kGroup * world);
      break;
    }
    default:
      break;
  }
  binding.counts = {count, 2};
  return binding;
}

// Labels of the nodes: blocks of several sizes, ranks dealt out in turn, uneven ones, one node, one
// rank a node.
inline std::vector<topology::Placement> placements_of(int world_size) {
  std::vector<topology::Placement> placements;
  for (int block : {1, 2, 3, 4, 8, world_size})
    placements.push_back(topology::place_blocks(world_size, block));
  for (int nodes : {2, 3}) placements.push_back(topology::place_cyclic(world_size, nodes));
  // Node sizes 1, 5, 3, 1, 2, 1, 5, ... and the same mixed through.
  std::vector<int> labels;
  for (int node = 0; static_cast<int>(labels.size()) < world_size; node++)
    labels.insert(labels.end(), std::vector<size_t>{1, 5, 3, 1, 2}[static_cast<size_t>(node) % 5],
                  node);
  labels.resize(static_cast<size_t>(world_size));
  placements.push_back(topology::place_ranks(labels));
  std::vector<int> mixed(labels.size());
  for (size_t rank = 0; rank < labels.size(); rank++)
    mixed[rank] = labels[(rank * 7 + 3) % labels.size()];
  placements.push_back(topology::place_ranks(mixed));
  // Small worlds make some of them alike.
  std::vector<topology::Placement> different;
  for (const topology::Placement& one : placements)
    if (std::find(different.begin(), different.end(), one) == different.end())
      different.push_back(one);
  return different;
}

// "0 0 1 1 2": the node of each rank.
inline std::string text_of(const topology::Placement& placement) {
  std::string text;
  for (int node : placement.node) {
    if (!text.empty()) text += ' ';
    text += std::to_string(node);
  }
  return text;
}

inline std::string first(const std::vector<std::string>& problems) {
  return problems.empty() ? "none" : problems[0];
}

}  // namespace bitrail::test
