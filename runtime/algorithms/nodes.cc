#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

std::vector<int> Nodes::mates() const {
  std::vector<int> ranks = ranks_of(own());
  const auto self = ranks.begin() + placement.local_of(rank);
  std::rotate(ranks.begin(), self, ranks.end());
  ranks.erase(ranks.begin());
  return ranks;
}

std::vector<int> Nodes::others() const {
  std::vector<int> nodes;
  for (int i = 1; i < count(); i++) nodes.push_back((own() + i) % count());
  return nodes;
}

uint32_t Nodes::mate_index(int mate) const {
  const int local = placement.local_of(mate);
  return static_cast<uint32_t>(local < placement.local_of(rank) ? local : local - 1);
}

uint32_t Nodes::node_index(int node) const {
  return static_cast<uint32_t>(node < own() ? node : node - 1);
}

bool spans_nodes(const Request& request) {
  return request.placement && request.placement->world_size() == request.world_size &&
         request.placement->nodes() > 1 && request.placement->most() > 1;
}

int rails_of(const topology::Placement& placement) {
  const int fewest = placement.fewest();
  const int most = placement.most();
  // Of `most` rails the busiest rank serves ceil(most / fewest), of `fewest` one.
  const int served = (most + fewest - 1) / fewest;
  return served * fewest <= most ? most : fewest;
}

Pool add_pool(schedule::Builder* builder, const char* name, uint32_t places,
              const Request& request) {
  const uint32_t pieces = pieces_of(request);
  const uint32_t depth = std::min(request.depth ? request.depth : kNodeDepth, pieces);
  Pool pool;
  pool.depth = depth < pieces ? depth : 0;
  pool.buffer =
      builder->buffer({name, schedule::Role::scratch, schedule::kDataUnit, schedule::kElements,
                       places * std::max(pool.depth, 1U), static_cast<uint32_t>(request.world_size),
                       pool.depth ? pieces : 1});
  return pool;
}

int binomial_parent(int index) {
  int highest = 1;
  while (highest * 2 <= index) highest *= 2;
  return index - highest;
}

std::vector<int> binomial_children(int index, int size) {
  int above = 1;  // the lowest power of two above `index`
  while (above <= index) above *= 2;
  std::vector<int> children;
  for (int distance = above; index + distance < size; distance *= 2)
    children.push_back(index + distance);
  return children;
}

}  // namespace bitrail::algorithms
