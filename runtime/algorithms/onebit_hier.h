// What the two halves of the hierarchical 1-bit allreduce share while a schedule is written: inside
// the node (onebit_hier_node.cc) and between nodes (onebit_hier.cc).
//
// The first `rails` ranks of every node code: the one with place l among its node's ranks works on
// share l of the vector, and talks to the ones with place l on the other nodes. That is a rail.
// With N nodes the vector has rails * N chunks: chunk l * N + n is averaged on rail l by node n. So
// a rail is a flat 1-bit allreduce of N ranks over its share:
//
//   x = (N / W) * sum over the node's ranks, in order      (share l, float32, exact)
//   b = x + e, s = scale(b), q = sign(b), e = b - s q      (share l, at each node)
//   a = (1/N) sum over nodes in order of s_n q_n + E       (one chunk, at node n)
//   S = scale(a), Q = sign(a), E = a - S Q;  y = S Q       (one chunk, at node n)
//
// One rail is the leader variant: for nodes with one network card, or of which one has one rank.
#pragma once

#include <vector>

#include "runtime/algorithms/onebit_plan.h"

namespace bitrail::algorithms::onebit {

struct HierPlan {
  const Request& request;
  const topology::Placement& placement;
  int rails = 1;
  int node = 0, local = 0;  // of this rank
  uint32_t pieces = 1;      // of a chunk
  uint32_t depth = 1;       // pieces of each peer in the node in flight
  Builder builder;
  CallerBuffers caller;
  BufferId values_out = 0;     // own values for the other rails: `depth` slots each
  BufferId values_in = 0;      // of the own share, from each rank of the node: `depth` slots each
  BufferId sums = 0;           // x: chunk n of the share in slot n
  BufferId error = 0;          // e, in the same order
  BufferId server_error = 0;   // E
  Sums worker_sums;            // of b, while it is signed
  Sums server_sums;            // of a, while it is signed
  BufferId scales_in = 0;      // of the rail, a slot a node
  BufferId flags = 0;          // a slot a rail: whether it was finite on all nodes
  BufferId verdict = 0;        // written when all rails' flags are in
  OperationId agreed = 0;      // the verdict
  BufferId wire_out = 0;       // packed x, chunk n of the share in slot n
  BufferId wire_in = 0;        // own chunk as packed by node n in slot n
  BufferId gather = 0;         // all chunks' results, packed
  BufferId server_scales = 0;  // a slot a chunk
  std::vector<OperationId> loads;

  bool codes() const { return local < rails; }
  uint32_t nodes() const { return static_cast<uint32_t>(placement.nodes()); }
  uint32_t chunks() const { return static_cast<uint32_t>(rails) * nodes(); }
  uint32_t chunk(int rail, int of) const {
    return static_cast<uint32_t>(rail) * nodes() + static_cast<uint32_t>(of);
  }
  uint32_t own_chunk() const { return chunk(local, node); }
  Range part_of(BufferId buffer, uint32_t of, uint32_t piece, uint32_t slot) const {
    return {buffer, slot, of, chunks(), piece, pieces};
  }
  // Chunk n of the own share in a buffer with a slot a node.
  Range shared(BufferId buffer, int of, uint32_t piece) const {
    return part_of(buffer, chunk(local, of), piece, static_cast<uint32_t>(of));
  }
  // A result, in the buffer with a slot a chunk.
  Range result(uint32_t of, uint32_t piece) const { return part_of(gather, of, piece, of); }
  Range own_error(uint32_t piece) const { return part_of(server_error, own_chunk(), piece, 0); }

  int rank_at(int local_rank) const {
    return placement.ranks_of(node)[static_cast<size_t>(local_rank)];
  }
  int rail_peer(int of) const { return placement.ranks_of(of)[static_cast<size_t>(local)]; }
  // The other nodes and the other places in the node, each from behind the own one: at each moment
  // everybody talks to a different one.
  std::vector<int> other_nodes() const;
  std::vector<int> other_locals() const;

  // Messages along a rail, and inside a node.
  uint32_t scale_message() const { return 0; }
  uint32_t scatter_message(uint32_t piece) const { return 1 + piece; }
  uint32_t server_scale_message() const { return 1 + pieces; }
  uint32_t gather_message(uint32_t piece) const { return 2 + pieces + piece; }
  uint32_t value_message(int of, uint32_t piece) const {
    return static_cast<uint32_t>(of) * pieces + piece;
  }
  uint32_t flag_message() const { return nodes() * pieces; }
  uint32_t result_message(int of, uint32_t piece) const {
    return flag_message() + 1 + value_message(of, piece);
  }
  uint32_t result_scale_message(int of) const {
    return 2 * flag_message() + 1 + static_cast<uint32_t>(of);
  }
};

// Pieces of a chunk. The planner cuts for a chunk a rank; with fewer rails chunks are longer.
uint32_t hier_pieces(const Request& request, int rails);

HierPlan make_hier_plan(const Request& request, const char* name, int rails);
// Everything up to the joint verdict of all ranks: sums inside the node, their signs already under
// way along the rails.
void open_hier(HierPlan* p);

}  // namespace bitrail::algorithms::onebit
