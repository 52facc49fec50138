// Schedules of a whole world, and bindings to check them at.
#pragma once

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

inline std::string first(const std::vector<std::string>& problems) {
  return problems.empty() ? "none" : problems[0];
}

}  // namespace bitrail::test
