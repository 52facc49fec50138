// Which node each rank of a job is on: equal on all ranks, so algorithms may decide from it.
#pragma once

#include <cstddef>
#include <vector>

namespace bitrail::topology {

struct Placement {
  std::vector<int> node;                // of each rank; numbered in the order of first ranks
  std::vector<int> local;               // of each rank: its place among the ranks of its node
  std::vector<std::vector<int>> ranks;  // of each node, ascending

  int world_size() const { return static_cast<int>(node.size()); }
  int nodes() const { return static_cast<int>(ranks.size()); }
  int node_of(int rank) const { return node[static_cast<size_t>(rank)]; }
  int local_of(int rank) const { return local[static_cast<size_t>(rank)]; }
  const std::vector<int>& ranks_of(int node_index) const {
    return ranks[static_cast<size_t>(node_index)];
  }
  // Ranks of the smallest and of the largest node.
  int fewest() const;
  int most() const;
  bool even() const { return fewest() == most(); }
  bool operator==(const Placement&) const = default;
};

// From a label of each rank's node; any numbers will do.
Placement place_ranks(const std::vector<int>& labels);
// Ranks 0..k-1 on node 0, the next k on node 1, ...; the last node may have fewer. k >= 1.
Placement place_blocks(int world_size, int ranks_per_node);
// Rank r on node r mod nodes, as schedulers that deal ranks out do. nodes >= 1.
Placement place_cyclic(int world_size, int nodes);

}  // namespace bitrail::topology
