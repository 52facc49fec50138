// Broadcast by trees, the nodes first: a binomial tree over one rank of each node (the root for its
// own), then one over the ranks of each node. Each node takes in the vector once. In pieces.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

namespace {

// The ranks of one tree, its root first.
struct Tree {
  std::vector<int> ranks;
  int index = -1;  // of the own rank; -1: not in it
};

Tree tree_of(std::vector<int> ranks, int root, int rank) {
  Tree tree{std::move(ranks)};
  std::rotate(tree.ranks.begin(), std::find(tree.ranks.begin(), tree.ranks.end(), root),
              tree.ranks.end());
  const auto found = std::find(tree.ranks.begin(), tree.ranks.end(), rank);
  if (found != tree.ranks.end()) tree.index = static_cast<int>(found - tree.ranks.begin());
  return tree;
}

void add_children(const Tree& tree, std::vector<int>* children) {
  if (tree.index < 0) return;
  for (int child : binomial_children(tree.index, static_cast<int>(tree.ranks.size())))
    children->push_back(tree.ranks[static_cast<size_t>(child)]);
}

int parent_in(const Tree& tree) {
  return tree.index <= 0 ? -1 : tree.ranks[static_cast<size_t>(binomial_parent(tree.index))];
}

// Who stands for a node in the tree of nodes.
int head_of(const topology::Placement& placement, int node, int root) {
  return placement.node_of(root) == node ? root : placement.ranks_of(node).front();
}

}  // namespace

TreePlace hier_broadcast_place(const topology::Placement& placement, int root, int rank) {
  std::vector<int> heads;
  for (int node = 0; node < placement.nodes(); node++)
    heads.push_back(head_of(placement, node, root));
  const int node = placement.node_of(rank);
  const Tree outer = tree_of(heads, root, rank);
  const Tree inner = tree_of(placement.ranks_of(node), heads[static_cast<size_t>(node)], rank);
  TreePlace place;
  place.parent = outer.index >= 0 ? parent_in(outer) : parent_in(inner);
  add_children(outer, &place.children);
  add_children(inner, &place.children);
  return place;
}

Schedule hier_tree_broadcast(const Request& request) {
  schedule::Builder builder(schedule_name("hier_tree", request), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, request);
  const TreePlace place = hier_broadcast_place(*request.placement, request.root, request.rank);
  const bool root = request.rank == request.root;
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    if (!root) builder.recv(place.parent, piece, whole(caller.output, request, piece));
    const schedule::Range from = whole(root ? caller.input : caller.output, request, piece);
    for (int child : place.children) builder.send(child, piece, from);
  }
  if (root && !request.in_place)
    builder.add(schedule::kCopy, {all_of(caller.input)}, {all_of(caller.output)});
  return builder.finish();
}

}  // namespace bitrail::algorithms
