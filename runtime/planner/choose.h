// Which algorithm serves a call, and into how many pieces it cuts a chunk.
//
// Both follow from facts that are equal on all ranks (sizes, world size, flags, BITRAIL_ALGO,
// BITRAIL_PIECE), so all ranks choose alike without talking.
#pragma once

#include <string>

#include "runtime/planner/registry.h"

namespace bitrail::planner {

// Up to here one latency and W - 1 messages beat log2 W latencies (two ranks: the same thing).
constexpr uint64_t kOneShotBytes = 1024;
constexpr int kOneShotRanks = 8;
// Up to here log2 W latencies with the whole vector beat 2 messages to and from every peer.
constexpr uint64_t kDoublingBytes = 16 * 1024;
// A received piece should still lie in the L2 cache (1 MiB and up on servers) when it is summed,
// yet be long enough that a message's fixed cost does not show.
constexpr uint64_t kPieceBytes = 512 * 1024;
// 32 KiB of sign bits: below UCX's rendezvous threshold on TCP, above its per-message cost.
constexpr uint64_t kOnebitPieceElements = 256 * 1024;
// Bounds the schedule's length; longer vectors get longer pieces.
constexpr uint32_t kMaxPieces = 256;

struct Choice {
  const Algorithm* algorithm = nullptr;
  Request request;     // as asked, with `pieces` set: what to build from
  std::string reason;  // for the INFO line: what was chosen and why
};

// `algo` is BITRAIL_ALGO ("allreduce:ring,broadcast:tree"; empty: free choice), `piece` is
// BITRAIL_PIECE (elements; 0: by size). A named algorithm that does not apply (ring for a
// deterministic call) gives way, and the reason says so. BITRAIL_ERR_CONFIG: algo cannot be read or
// names what is not there; the text lists the nearest names. Writes one INFO line.
Status choose(const Request& request, const std::string& algo, int64_t piece, Choice* choice);

// The check of BITRAIL_ALGO alone, for communicator creation.
Status check_algo(const std::string& algo);

}  // namespace bitrail::planner
