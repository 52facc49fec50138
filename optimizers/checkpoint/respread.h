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
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "optimizers/checkpoint/load.h"
#include "runtime/engine/onebit.h"

namespace bitrail::checkpoint {

// Fills out[0..count) with values [begin, begin + count) of the old rank's array.
using ErrorSource = std::function<Status(int rank, uint64_t begin, uint64_t count, float* out)>;

// The per-rank float32 tensor `name` of an open checkpoint, which has to outlive the source.
ErrorSource SourceOf(Checkpoint& checkpoint, const std::string& name);

// Worker errors of rank `rank` of `to`, from those of `from` (each `from.padded()` values, chunk by
// chunk as runtime/api/error_state.h says). Writes worker[0 .. to.padded()). Both layouts hold the
// same tensors, else BITRAIL_ERR_MISMATCH. Scratch: 3 MiB, whatever the size; reads at most
// ceil(W/W') + 1 old ranks.
Status RespreadWorker(const engine::OnebitLayout& from, const engine::OnebitLayout& to, int rank,
                      const ErrorSource& source, float* worker);

// Server errors of rank `rank` of `to` (to.chunk values) from those of `from` (from.chunk each).
Status RespreadServer(const engine::OnebitLayout& from, const engine::OnebitLayout& to, int rank,
                      const ErrorSource& source, float* server);

}  // namespace bitrail::checkpoint
