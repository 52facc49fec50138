// Values of the worker's side run by run, and their sums: what its executors share.
#pragma once

#include "kernels/host/scale.h"
#include "runtime/engine/onebit_parts.h"
#include "runtime/engine/onebit_scale.h"

namespace bitrail::engine {

// The sums that a step adds to, its write number `write`; the first step finds zeros.
inline double* sums_of(Run& run, const Step& step, uint32_t write) {
  double* sums = reinterpret_cast<double*>(run.at(*run.program->write(step, write)));
  if (step.attribute != 0) std::fill_n(sums, run.onebit->layout->scales() + 1, 0.0);
  return sums;
}

inline bool own_only(const OnebitCall& call) { return call.mode == OnebitMode::allgather; }

// The values that a step codes where they lie as float32 in its first range: sums of a node. Null:
// the caller's.
inline const float* coded(const Run& run, const Step& step) {
  const Span& span = *run.program->read(step, 0);
  return span.scratch ? floats(run.at(span)) : nullptr;
}
inline const float* from(const float* values, uint64_t offset) {
  return values != nullptr ? values + offset : nullptr;
}

// Sum of b^2 or |b| over a part. `values` and `error` are the part's; null: the caller's, and none.
inline double part_sum(OnebitCall& call, const Part& part, uint64_t chunk, const float* values,
                       const float* error) {
  const auto sum = call.layout->l1 ? kernels::AbsoluteSum : kernels::SquaredSum;
  const Place at = place(call, part, chunk, own_only(call));
  double total = 0;
  const bool tiled = values == nullptr && needs_tile(call);
  const uint64_t stride = tiled ? kTile : std::max<uint64_t>(at.valid, 1);
  for (uint64_t skip = 0; skip < at.valid; skip += stride) {
    const uint64_t n = std::min(stride, at.valid - skip);
    const float* x =
        values != nullptr ? values + skip : load(call, part, at, skip, n, call.tile.data());
    total += sum(x, error != nullptr ? error + skip : nullptr, n);
  }
  if (error != nullptr && at.valid < part.length)  // padding carries an error of its own
    total += sum(error + at.valid, nullptr, part.length - at.valid);
  return total;
}

// Scale of a block, elements [begin, end) of a chunk; `values` (null: the caller's) and `error` are
// the block's.
inline float block_scale(OnebitCall& call, uint64_t chunk, uint64_t begin, uint64_t end,
                         const float* values, const float* error) {
  double sum = 0;
  for_each_part(*call.layout, begin, end, [&](const Part& part, uint64_t offset) {
    sum += part_sum(call, part, chunk, from(values, offset), error + offset);
  });
  return scale_of(*call.layout, sum, end - begin);
}

// Calls apply(x, at, n) for the runs of a part (`values` is the part's, null: the caller's): x is
// the values of its elements [at, at + n), null for padding; `at` is a multiple of 8, and so is n
// unless the part ends there.
template <typename Apply>
void for_each_run(OnebitCall& call, const Part& part, uint64_t chunk, const float* values,
                  Apply apply) {
  const Place at = place(call, part, chunk, own_only(call));
  uint64_t done = 0;
  if (values == nullptr && needs_tile(call)) {
    float* tile = call.tile.data();
    while (done < at.valid) {
      const uint64_t n = std::min(kTile, at.valid - done);
      const float* x = load(call, part, at, done, n, tile);
      const uint64_t padded = std::min((n + 7) / 8 * 8, part.length - done);
      for (uint64_t i = n; i < padded; i++) tile[i] = 0;
      apply(x, done, padded);
      done += padded;
    }
  } else {
    const float* x = values != nullptr ? values : static_cast<const float*>(call.send) + at.buffer;
    done = at.valid / 8 * 8;
    if (done != 0) apply(x, uint64_t{0}, done);
    if (done < at.valid) {  // the last byte is part data, part padding
      float tail[8] = {};
      std::copy(x + done, x + at.valid, tail);
      apply(tail, done, uint64_t{8});
      done += 8;
    }
  }
  if (done < part.length) apply(nullptr, done, part.length - done);
}

}  // namespace bitrail::engine
