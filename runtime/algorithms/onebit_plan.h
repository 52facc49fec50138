// What the 1-bit schedules share while they are written: buffers, message numbers, and the worker's
// half (onebit_worker.cc).
//
//   b = x + e, s = scale(b), q = sign(b), e = b - s q                (worker, whole vector)
//
// Equations: 1-bit Adam, arXiv 2102.02888. The verdict stands in the middle: with the scales
// travels whether everything was finite, and no error or output is written before all ranks' flags
// are in. Signs change nothing, so those of early pieces are on the wire while the scales are still
// taken.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms::onebit {

using schedule::BufferId;
using schedule::Builder;
using schedule::kElements;
using schedule::kScales;
using schedule::OperationId;
using schedule::Range;
using schedule::Role;

// A buffer of sums, to which one operation after the other adds.
struct Sums {
  BufferId buffer = 0;
  bool begun = false;  // something was added
};

struct Plan {
  const Request& request;
  Builder builder;
  CallerBuffers caller;
  BufferId error = 0;                // the worker's, whole vector
  BufferId server_error = 0;         // own chunk
  Sums worker_sums;                  // of the own values, while they are scanned
  Sums server_sums;                  // of the own chunk's averages, while they are signed
  BufferId scales_in = 0;            // a slot a rank, the own one too
  BufferId verdict = 0;              // written when all flags are in
  schedule::OperationId agreed = 0;  // the verdict
  BufferId wire_out = 0;             // packed input, chunk j for rank j
  BufferId wire_in = 0;              // own chunk as packed by rank p in slot p
  BufferId server_scales = 0;        // a slot a rank
  BufferId gather_out = 0;           // own chunk's result
  BufferId gather_in = 0;            // chunk p's result in slot p

  int rank() const { return request.rank; }
  int world() const { return request.world_size; }
  uint32_t own() const { return static_cast<uint32_t>(request.rank); }
  Range piece_of(BufferId buffer, int chunk, uint32_t piece, uint32_t slot = 0) const {
    return part(buffer, chunk, request, piece, slot);
  }
  uint32_t chunks() const { return static_cast<uint32_t>(request.world_size); }
  uint32_t pieces() const { return pieces_of(request); }
  // Pieces whose signs leave before the verdict. With segment scales all do: summing and signing is
  // one pass, and what comes after it costs what packing would. With block scales signing early
  // costs a second look at the values, so only those do that keep the wire busy meanwhile.
  uint32_t early() const { return request.block_scale ? std::min(pieces(), 4U) : pieces(); }
  // Messages of one ordered pair: scales, pieces, server scales, pieces of the result.
  uint32_t scale_message() const { return 0; }
  uint32_t scatter_message(uint32_t piece) const { return 1 + piece; }
  uint32_t server_scale_message() const { return 1 + pieces(); }
  uint32_t gather_message(uint32_t piece) const { return 2 + pieces() + piece; }

  BufferId add_buffer(const char* name, Role role, schedule::Unit unit, schedule::Symbol symbol,
                      uint32_t slots, uint32_t fraction) {
    return builder.buffer({name, role, unit, symbol, slots, fraction, 1});
  }
  schedule::Unit bit_unit() const {
    return request.block_scale ? schedule::kBitBlockUnit : schedule::kBitUnit;
  }
};

// An operation that reads these and the sums (the first sets them to zero instead) and writes these
// and the sums.
void add_summing(Builder* builder, const schedule::OperationKind& kind, Sums* sums,
                 std::vector<Range> reads, std::vector<Range> writes);

// With the buffers that all have.
Plan make_plan(const Request& request);
void add_worker_buffers(Plan* p);

// Receives the own slot's equivalent from everybody, sends the own slot to everybody.
void exchange_slots(Plan* p, BufferId slots, uint32_t message);
// Adds what [input, error) hold in `piece` of `chunk` to the sums.
void scan(Plan* p, int chunk, uint32_t piece, BufferId error);
// Own scale from the sums, exchanged, and the joint verdict.
void agree(Plan* p);

// Everything of the worker before the verdict and the verdict: early pieces are on their way.
// Receives all pieces of the scatter.
void open_scatter(Plan* p);
// Packs and sends a piece that is not early.
void pack_piece(Plan* p, uint32_t piece);
// Writes the errors that an early piece left behind. Returns what has to be done before anything of
// a piece is delivered: these (a consumer may change what a producer reads) and the verdict.
std::vector<OperationId> settle_piece(Plan* p, uint32_t piece);

}  // namespace bitrail::algorithms::onebit
