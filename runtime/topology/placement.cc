#include "runtime/topology/placement.h"

#include <algorithm>
#include <map>

namespace bitrail::topology {

int Placement::fewest() const {
  size_t least = node.size();
  for (const std::vector<int>& one : ranks) least = std::min(least, one.size());
  return static_cast<int>(least);
}

int Placement::most() const {
  size_t highest = 0;
  for (const std::vector<int>& one : ranks) highest = std::max(highest, one.size());
  return static_cast<int>(highest);
}

Placement place_ranks(const std::vector<int>& labels) {
  Placement placement;
  std::map<int, int> numbers;
  for (size_t rank = 0; rank < labels.size(); rank++) {
    const auto [entry, added] = numbers.emplace(labels[rank], placement.nodes());
    if (added) placement.ranks.emplace_back();
    std::vector<int>& mates = placement.ranks[static_cast<size_t>(entry->second)];
    placement.node.push_back(entry->second);
    placement.local.push_back(static_cast<int>(mates.size()));
    mates.push_back(static_cast<int>(rank));
  }
  return placement;
}

Placement place_blocks(int world_size, int ranks_per_node) {
  std::vector<int> labels;
  for (int rank = 0; rank < world_size; rank++) labels.push_back(rank / ranks_per_node);
  return place_ranks(labels);
}

Placement place_cyclic(int world_size, int nodes) {
  std::vector<int> labels;
  for (int rank = 0; rank < world_size; rank++) labels.push_back(rank % nodes);
  return place_ranks(labels);
}

}  // namespace bitrail::topology
