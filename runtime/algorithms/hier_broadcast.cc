// Broadcast by trees, the nodes first: a binomial tree over one rank of each node (the root for its
// own), then one over the ranks of each node. Each node takes in the vector once. In pieces.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

namespace {

// Who stands for a node in the tree of nodes.
int head_of(const topology::Placement& placement, int node, int root) {
  return placement.node_of(root) == node ? root : placement.ranks_of(node).front();
}

}  // namespace

TreePlace hier_broadcast_place(const topology::Placement& placement, int root, int rank) {
  const int node = placement.node_of(rank);
  const int nodes = placement.nodes();
  const int first = placement.node_of(root);
  const std::vector<int>& mates = placement.ranks_of(node);
  const auto size = static_cast<int>(mates.size());
  const int head = head_of(placement, node, root);
  TreePlace place;
  // Both trees are counted from their root.
  if (rank == head) {
    const int index = (node - first + nodes) % nodes;
    const auto head_at = [&](int i) { return head_of(placement, (first + i) % nodes, root); };
    if (index > 0) place.parent = head_at(binomial_parent(index));
    for (int child : binomial_children(index, nodes)) place.children.push_back(head_at(child));
  }
  const int offset = placement.local_of(head);
  const int index = (placement.local_of(rank) - offset + size) % size;
  const auto mate_at = [&](int i) { return mates[static_cast<size_t>((offset + i) % size)]; };
  if (index > 0) place.parent = mate_at(binomial_parent(index));
  for (int child : binomial_children(index, size)) place.children.push_back(mate_at(child));
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
