// Helpers that the algorithms share: the caller's buffers, and ranges in them.
#pragma once

#include <string>
#include <vector>

#include "runtime/algorithms/algorithm.h"

namespace bitrail::algorithms {

struct CallerBuffers {
  schedule::BufferId input = 0, output = 0;  // equal in place
};

// Declares input and output for the request: whole, or one chunk where the collective says so.
CallerBuffers caller_buffers(schedule::Builder* builder, const Request& request);

// "direct allreduce w4 k16"
std::string schedule_name(const char* algorithm, const Request& request);

inline uint32_t pieces_of(const Request& request) { return request.pieces ? request.pieces : 1; }

// Piece k of K of chunk j of W, in slot `slot`.
inline schedule::Range part(schedule::BufferId buffer, int chunk, const Request& request,
                            uint32_t piece, uint32_t slot = 0) {
  return {buffer,
          slot,
          static_cast<uint32_t>(chunk),
          static_cast<uint32_t>(request.world_size),
          piece,
          pieces_of(request)};
}
// Piece k of K of everything.
inline schedule::Range whole(schedule::BufferId buffer, const Request& request, uint32_t piece = 0,
                             uint32_t slot = 0) {
  return {buffer, slot, 0, 1, piece, pieces_of(request)};
}
inline schedule::Range all_of(schedule::BufferId buffer, uint32_t slot = 0) {
  return {buffer, slot, 0, 1, 0, 1};
}

// Worlds that are no power of two, for algorithms that want one: of the 2 `folded` lowest ranks
// each even one is stood for by the next odd one.
struct Folding {
  int power = 1;   // largest power of two <= W: so many take part
  int steps = 0;   // log2 of it
  int folded = 0;  // W - power
  int index_of(int rank) const { return rank < 2 * folded ? rank / 2 : rank - folded; }
  int rank_of(int index) const { return index < folded ? 2 * index + 1 : index + folded; }
};
Folding folding_of(int world_size);

// A rank's neighbours in a tree. parent -1: the root.
struct TreePlace {
  int parent = -1;
  std::vector<int> children;
};

// The trees of tree_allreduce and of hier_tree_broadcast, for their schedules and costs.
TreePlace tree_place(const Request& request, int rank);
TreePlace hier_broadcast_place(const topology::Placement& placement, int root, int rank);
// Pieces of the whole vector in tree_allreduce.
uint32_t tree_pieces(const Request& request);

// Steps of a pairwise exchange in flight where the request does not say.
constexpr uint32_t kPairwiseDepth = 2;

}  // namespace bitrail::algorithms
