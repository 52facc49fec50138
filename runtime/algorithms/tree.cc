// Tree allreduce: sums flow up a binary tree, the result flows down, both in pieces. Latency like
// 2 log2 W, and every rank moves each byte at most a fixed number of times.
//
// Where the nodes are known, the first ranks of the nodes make one binary tree and the ranks of
// each node another below it: a byte crosses between two nodes only along N-1 edges.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::kElements;
using schedule::kReduce;
using schedule::OperationId;
using schedule::Range;
using schedule::Role;

namespace {

constexpr uint64_t kTreePieceBytes = 64 * 1024;
constexpr uint64_t kMostTreePieces = 256;

// Adds the neighbours of number `index` in the binary tree over `count` ranks.
template <typename RankAt>
void add_binary(int index, int count, RankAt rank_at, TreePlace* place) {
  if (index > 0) place->parent = rank_at((index - 1) / 2);
  for (int child : {2 * index + 1, 2 * index + 2})
    if (child < count) place->children.push_back(rank_at(child));
}

}  // namespace

uint32_t tree_pieces(const Request& request) {
  const uint64_t by_size =
      std::min((request.bytes + kTreePieceBytes - 1) / kTreePieceBytes, kMostTreePieces);
  return std::max(pieces_of(request), static_cast<uint32_t>(by_size));
}

TreePlace tree_place(const Request& request, int rank) {
  TreePlace place;
  if (!spans_nodes(request)) {
    add_binary(
        rank, request.world_size, [](int index) { return index; }, &place);
    return place;
  }
  const topology::Placement& placement = *request.placement;
  const int node = placement.node_of(rank);
  const int local = placement.local_of(rank);
  if (local == 0)
    add_binary(
        node, placement.nodes(), [&](int other) { return placement.ranks_of(other).front(); },
        &place);
  const std::vector<int>& ranks = placement.ranks_of(node);
  add_binary(
      local, static_cast<int>(ranks.size()),
      [&](int index) { return ranks[static_cast<size_t>(index)]; }, &place);
  return place;
}

Schedule tree_allreduce(const Request& request) {
  Request cut = request;
  cut.pieces = tree_pieces(request);
  Builder builder(schedule_name("tree", cut), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, cut);
  const TreePlace place = tree_place(request, request.rank);
  const auto children = static_cast<uint32_t>(place.children.size());
  const bool root = place.parent < 0;
  if (request.world_size == 1) {
    if (!request.in_place)
      builder.add(schedule::kCopy, {all_of(caller.input)}, {all_of(caller.output)});
    return builder.finish();
  }
  const uint32_t depth = std::min(request.depth ? request.depth : kNodeDepth, cut.pieces);
  schedule::BufferId arrived = 0;
  schedule::BufferId sums = 0;
  if (children)
    arrived = builder.buffer({"arrived", Role::scratch, schedule::kDataUnit, kElements,
                              children * depth, 1, cut.pieces});
  if (children && !root)
    sums = builder.buffer(
        {"sums", Role::scratch, schedule::kDataUnit, kElements, depth, 1, cut.pieces});
  const auto up = [](uint32_t piece) { return piece; };
  const auto down = [&](uint32_t piece) { return cut.pieces + piece; };
  std::vector<OperationId> done;  // by piece; what is sent up is not further ahead than scratch
  for (uint32_t piece = 0; piece < cut.pieces; piece++) {
    std::vector<Range> sources = {whole(caller.input, cut, piece)};
    for (uint32_t i = 0; i < children; i++) {
      sources.push_back(whole(arrived, cut, piece, i * depth + piece % depth));
      builder.recv(place.children[i], up(piece), sources.back());
    }
    const Range result = whole(caller.output, cut, piece);
    Range sum = sources[0];
    if (children) {
      sum = root ? result : whole(sums, cut, piece, piece % depth);
      builder.add(kReduce, std::move(sources), {sum});
    }
    if (!root) {
      std::vector<OperationId> paced;
      if (piece >= 2 * depth) paced.push_back(done[piece - 2 * depth]);
      builder.send(place.parent, up(piece), sum, paced);
      done.push_back(builder.recv(place.parent, down(piece), result));
    }
    for (int child : place.children) builder.send(child, down(piece), result);
  }
  return builder.finish();
}

}  // namespace bitrail::algorithms
