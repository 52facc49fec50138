// Error state of W ranks for W' ranks (derivation: docs/checkpoints.md).
//
// Worker errors: rank r of W stands for the interval [r/W, (r+1)/W); a new rank averages the old
// ranks by the overlap of its own interval with theirs:
//
//   e'_q = sum over r of w(q, r) e_r,
//   w(q, r) = W' * length of the overlap of [q/W', (q+1)/W') and [r/W, (r+1)/W)
//
// Rows of w sum to 1 (no error grows), columns to W'/W, hence mean over q of e'_q = mean over r of
// e_r, element by element. Server errors keep their value at each element; only the rank that holds
// it changes. Padding belongs to no parameter and starts at zero.
//
// On rails (engine/onebit.h) the nodes take the ranks' part in this: a node's worker errors are
// those of its rails one after the other, and the mean is one over nodes. So either form becomes
// the other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "optimizers/checkpoint/load.h"
#include "runtime/engine/onebit.h"

namespace bitrail::checkpoint {

// Fills out[0..count) with values [begin, begin + count) of the old rank's array.
using ErrorSource = std::function<Status(int rank, uint64_t begin, uint64_t count, float* out)>;

// The per-rank float32 tensor `name` of an open checkpoint, which has to outlive the source.
ErrorSource SourceOf(Checkpoint& checkpoint, const std::string& name);

// On rails: the same for a node of `from` instead of a rank (all its rails' errors, from.padded()
// values), and for a chunk. `holders`: the old rank that averages each chunk, and codes for its
// node on its rail. Flat: `source` itself.
ErrorSource ByVoice(const engine::OnebitLayout& from, const std::vector<int>& holders,
                    const ErrorSource& source);
ErrorSource ByChunk(const engine::OnebitLayout& from, const std::vector<int>& holders,
                    const ErrorSource& source);

// Worker errors of rank `rank` of `to`, from those of `from` (each `from.padded()` values, chunk by
// chunk as runtime/api/error_state.h says; ByVoice). Writes worker[0 .. to.padded()). On rails
// `rank` is the node, and what is written are the errors of its rail `rail`. Both layouts hold the
// same tensors, else BITRAIL_ERR_MISMATCH. Scratch: 3 MiB, whatever the size; reads at most
// ceil(W/W') + 1 old ranks.
Status RespreadWorker(const engine::OnebitLayout& from, const engine::OnebitLayout& to, int rank,
                      const ErrorSource& source, float* worker, int rail = 0);

// Server errors of chunk `wanted` of `to`, flat: of that rank (to.chunk values) from those of
// `from` (from.chunk each; ByChunk).
Status RespreadServer(const engine::OnebitLayout& from, const engine::OnebitLayout& to, int wanted,
                      const ErrorSource& source, float* server);

}  // namespace bitrail::checkpoint
