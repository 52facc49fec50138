// An algorithm: a function from what is asked (collective, rank, world size, options) to the
// schedule of one rank. One file per algorithm; docs/algorithms.md shows how to add one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/algorithms/rates.h"
#include "runtime/schedule/builder.h"
#include "runtime/schedule/collective.h"
#include "runtime/schedule/schedule.h"
#include "runtime/topology/placement.h"

namespace bitrail::algorithms {

using schedule::Collective;
using schedule::Schedule;

// Everything but `rank` is equal on all ranks, and so is every decision taken from it.
struct Request {
  Collective collective = Collective::allreduce;
  int world_size = 1;
  int rank = 0;
  int root = 0;                // broadcast
  uint64_t count = 0;          // elements of the whole (Symbol kElements)
  uint64_t bytes = 0;          // the same in the call's data type
  uint32_t pieces = 0;         // a chunk is cut into so many; 0: by its size (planner/choose.h)
  uint32_t depth = 0;          // scratch pieces per peer in flight; 0: the algorithm's own
  bool in_place = false;       // input and output are one buffer
  bool deterministic = false;  // rank-ordered sums
  bool block_scale = false;    // 1 bit: scales inside the records
  // Which node each rank is on; null: not known, and only algorithms that do not care apply. Lives
  // as long as the request.
  const topology::Placement* placement = nullptr;
};

struct Algorithm {
  std::string name;  // "ring"
  Collective collective = Collective::allreduce;
  // Called at set-up only, so that modules may bind data to them.
  std::function<bool(const Request& request)> applies;
  std::function<Schedule(const Request& request)> build;  // pieces > 0 by now
  // Predicted microseconds of the slowest rank, the same on all ranks (`rank` of the request does
  // not count); docs/algorithms.md has the formulas. Empty: never chosen by cost, only by name.
  std::function<double(const Request& request, const Rates& rates)> cost = {};
  // 1 bit: how many ranks of a node code its sums (onebit_hier.h). Empty: every rank codes its own
  // values.
  std::function<int(const Request& request)> rails = {};
};

// Ring: W-1 steps to the next neighbour. Fewest bytes, one peer at a time, W-1 latencies.
Schedule ring_allreduce(const Request& request);
Schedule ring_reduce_scatter(const Request& request);
Schedule ring_allgather(const Request& request);
// Recursive doubling: everybody's whole vector, log2 W steps. For small ones.
Schedule doubling_allreduce(const Request& request);
// One-shot: everybody's whole vector to everybody, one step. For the smallest.
Schedule one_shot_allreduce(const Request& request);
// Recursive halving and doubling: 2 log2 W steps with the ring's bytes.
Schedule halving_allreduce(const Request& request);
// Binary tree up and down, in pieces; the nodes' first ranks on top where nodes are known.
Schedule tree_allreduce(const Request& request);
// Bruck: log2 W steps for small vectors.
Schedule bruck_allgather(const Request& request);
// Hierarchical, from the placement: inside the node, between nodes along rails, inside the node.
Schedule hier_allreduce(const Request& request);
Schedule leader_allreduce(const Request& request);  // with one rail
Schedule hier_reduce_scatter(const Request& request);
Schedule hier_allgather(const Request& request);
Schedule hier_tree_broadcast(const Request& request);
Schedule hier_barrier(const Request& request);
// Direct: chunk j goes to rank j, which sums in rank order; results go straight to everybody.
Schedule direct_allreduce(const Request& request);
Schedule direct_reduce_scatter(const Request& request);
Schedule direct_allgather(const Request& request);
Schedule direct_alltoall(const Request& request);
Schedule pairwise_alltoall(const Request& request);
Schedule tree_broadcast(const Request& request);
Schedule dissemination_barrier(const Request& request);
// 1 bit, as `direct`, packed with error feedback in both halves.
Schedule onebit_direct_allreduce(const Request& request);
Schedule onebit_direct_reduce_scatter(const Request& request);
Schedule onebit_direct_allgather(const Request& request);
// 1 bit between nodes only: onebit_hier.h.
bool onebit_hier_applies(const Request& request);
Schedule onebit_hier_allreduce(const Request& request);
int onebit_hier_rails(const Request& request);
Schedule onebit_leader_allreduce(const Request& request);
int onebit_leader_rails(const Request& request);

}  // namespace bitrail::algorithms
