// What the hierarchical schedules share: who of a node does what, and scratch that is reused.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

// Pieces of a peer in flight where the request does not say.
constexpr uint32_t kNodeDepth = 4;

// The nodes as seen from one rank. The request has a placement.
struct Nodes {
  const topology::Placement& placement;
  int rank = 0;

  int count() const { return placement.nodes(); }
  int own() const { return placement.node_of(rank); }
  const std::vector<int>& ranks_of(int node) const { return placement.ranks_of(node); }
  // The rank of `node` that does what has number `index`: its ranks in turn.
  int server(int node, int index) const {
    const std::vector<int>& ranks = ranks_of(node);
    return ranks[static_cast<size_t>(index) % ranks.size()];
  }
  // The other ranks of the own node, starting behind the own one.
  std::vector<int> mates() const;
  // The other nodes, starting behind the own one, so that no node is everybody's target at once.
  std::vector<int> others() const;
  // Where `mate` stands among the other ranks of the node, `node` among the other nodes.
  uint32_t mate_index(int mate) const;
  uint32_t node_index(int node) const;
  uint32_t mate_count() const { return static_cast<uint32_t>(ranks_of(own()).size()) - 1; }
};

inline Nodes nodes_of(const Request& request) { return {*request.placement, request.rank}; }

// More than one node, and a node with more than one rank: otherwise there is nothing to keep apart.
bool spans_nodes(const Request& request);

// Into how many shares the nodes' exchange is cut, each served by one rank of every node: as many
// as the smallest or as the largest node has ranks, whichever leaves the busiest rank less of the
// vector.
int rails_of(const topology::Placement& placement);

// Scratch of `places` times `depth` pieces of a chunk, reused in turn; whole chunks where a chunk
// has no more pieces than that.
struct Pool {
  schedule::BufferId buffer = 0;
  uint32_t depth = 1;  // 0: a place is a whole chunk
  uint32_t slot(uint32_t place, uint32_t piece) const {
    return depth ? place * depth + piece % depth : place;
  }
};
Pool add_pool(schedule::Builder* builder, const char* name, uint32_t places,
              const Request& request);

// Binomial tree of `size` from 0: v receives from v without its highest bit and sends to v + 2^s
// for the bits above it, the deepest subtree first.
int binomial_parent(int index);
std::vector<int> binomial_children(int index, int size);

}  // namespace bitrail::algorithms
