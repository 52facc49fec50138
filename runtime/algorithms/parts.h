// Helpers that the algorithms share: the caller's buffers, and ranges in them.
#pragma once

#include <string>

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

}  // namespace bitrail::algorithms
