// 1-bit collectives, direct: chunk j of every rank goes to rank j packed to sign bits, rank j
// averages, packs again, and the result goes straight to everybody. Equations: 1-bit Adam,
// arXiv 2102.02888; error feedback at both packings:
//
//   b = x + e, s = scale(b), q = sign(b), e = b - s q                (worker, whole vector)
//   a = (1/W) sum over ranks in order of s_p q_p + E                 (server, own chunk)
//   S = scale(a), Q = sign(a), E = a - S Q;  y = S Q                 (server, own chunk)
//
// The verdict comes first: with the scales travels whether everything was finite, and no error or
// output is written before all ranks' flags are in.
//
// Segment scales: S needs the whole chunk's average, which splits the second half from the first.
// Block scales lie inside the records, so piece k is gathered while piece k+1 is still scattered.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::BufferId;
using schedule::Builder;
using schedule::kElements;
using schedule::kScales;
using schedule::Range;
using schedule::Role;

namespace {

struct Plan {
  const Request& request;
  Builder builder;
  CallerBuffers caller;
  BufferId error = 0;                // the worker's, whole vector
  BufferId server_error = 0;         // own chunk
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
  uint32_t chunks() const { return static_cast<uint32_t>(request.world_size); }
  uint32_t pieces() const { return pieces_of(request); }
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

Plan plan(const Request& request) {
  Plan p{request,
         Builder(schedule_name("onebit_direct", request), request.rank, request.world_size),
         {}};
  p.caller = caller_buffers(&p.builder, request);
  p.scales_in = p.add_buffer("scales", Role::scratch, schedule::kFloatUnit, kScales, p.chunks(), 1);
  p.verdict = p.add_buffer("verdict", Role::scratch, schedule::kByteUnit, kScales, 1, 1);
  return p;
}

void add_worker_buffers(Plan* p) {
  p->error =
      p->add_buffer("worker_error", Role::worker_error, schedule::kFloatUnit, kElements, 1, 1);
  p->wire_out = p->add_buffer("wire_out", Role::scratch, p->bit_unit(), kElements, 1, 1);
  p->wire_in =
      p->add_buffer("wire_in", Role::scratch, p->bit_unit(), kElements, p->chunks(), p->chunks());
}

void add_gather_buffers(Plan* p) {
  p->server_error = p->add_buffer("server_error", Role::server_error, schedule::kFloatUnit,
                                  kElements, 1, p->chunks());
  p->gather_out =
      p->add_buffer("gather_out", Role::scratch, p->bit_unit(), kElements, 1, p->chunks());
  p->gather_in =
      p->add_buffer("gather_in", Role::scratch, p->bit_unit(), kElements, p->chunks(), p->chunks());
}

void exchange_slots(Plan* p, BufferId slots, uint32_t message) {
  for (int from : p->builder.recv_order())
    p->builder.recv(from, message, all_of(slots, static_cast<uint32_t>(from)));
  for (int to : p->builder.send_order()) p->builder.send(to, message, all_of(slots, p->own()));
}

// Scale of what `data` and `error` hold, exchanged, and the joint verdict.
void agree(Plan* p, const Range& data, const Range& error) {
  p->builder.add(schedule::kScale, {data, error}, {all_of(p->scales_in, p->own())});
  exchange_slots(p, p->scales_in, p->scale_message());
  std::vector<Range> flags;
  for (uint32_t slot = 0; slot < p->chunks(); slot++) flags.push_back(all_of(p->scales_in, slot));
  p->agreed = p->builder.add(schedule::kVerdict, std::move(flags), {all_of(p->verdict)});
}

// Receives do not wait for anything: the peers' pieces find their place open.
void post_scatter(Plan* p) {
  for (uint32_t piece = 0; piece < p->pieces(); piece++)
    for (int from : p->builder.recv_order())
      p->builder.recv(from, p->scatter_message(piece),
                      part(p->wire_in, p->rank(), p->request, piece, static_cast<uint32_t>(from)));
}
void post_gather(Plan* p) {
  for (uint32_t piece = 0; piece < p->pieces(); piece++)
    for (int from : p->builder.recv_order())
      p->builder.recv(from, p->gather_message(piece),
                      part(p->gather_in, from, p->request, piece, static_cast<uint32_t>(from)));
}

void pack_chunk(Plan* p, int chunk, uint32_t piece) {
  const Range error = part(p->error, chunk, p->request, piece);
  std::vector<Range> reads = {part(p->caller.input, chunk, p->request, piece), error,
                              all_of(p->verdict)};
  if (!p->request.block_scale) reads.push_back(all_of(p->scales_in, p->own()));
  const Range bits = chunk == p->rank() ? part(p->wire_in, chunk, p->request, piece, p->own())
                                        : part(p->wire_out, chunk, p->request, piece);
  p->builder.add(schedule::kPack, std::move(reads), {bits, error});
  if (chunk != p->rank()) p->builder.send(chunk, p->scatter_message(piece), bits);
}

void pack_piece(Plan* p, uint32_t piece) {
  for (int to : p->builder.send_order()) pack_chunk(p, to, piece);
  pack_chunk(p, p->rank(), piece);
}

// What a sum over the ranks reads: their bits in rank order, and further ranges in between.
std::vector<Range> ranks_bits(const Plan& p, uint32_t piece) {
  std::vector<Range> reads;
  for (uint32_t slot = 0; slot < p.chunks(); slot++)
    reads.push_back(part(p.wire_in, p.rank(), p.request, piece, slot));
  return reads;
}
void append_scales(const Plan& p, std::vector<Range>* reads) {
  if (p.request.block_scale) return;
  for (uint32_t slot = 0; slot < p.chunks(); slot++) reads->push_back(all_of(p.scales_in, slot));
}

void average_piece(Plan* p, uint32_t piece) {
  const Range accumulator = part(p->server_error, p->rank(), p->request, piece);
  std::vector<Range> reads = ranks_bits(*p, piece);
  reads.push_back(accumulator);
  append_scales(*p, &reads);
  p->builder.add(schedule::kUnpackAverage, std::move(reads), {accumulator});
}

void send_result(Plan* p, uint32_t piece) {
  for (int to : p->builder.send_order())
    p->builder.send(to, p->gather_message(piece),
                    part(p->gather_out, p->rank(), p->request, piece));
}

void server_pack_piece(Plan* p, uint32_t piece) {
  const Range error = part(p->server_error, p->rank(), p->request, piece);
  std::vector<Range> reads = {error};
  if (!p->request.block_scale) reads.push_back(all_of(p->server_scales, p->own()));
  p->builder.add(schedule::kServerPack, std::move(reads),
                 {part(p->gather_out, p->rank(), p->request, piece), error});
  send_result(p, piece);
}

void unpack_chunk(Plan* p, int chunk, uint32_t piece, BufferId scales) {
  const auto slot = static_cast<uint32_t>(chunk);
  std::vector<Range> reads = {chunk == p->rank()
                                  ? part(p->gather_out, chunk, p->request, piece)
                                  : part(p->gather_in, chunk, p->request, piece, slot)};
  if (!p->request.block_scale) reads.push_back(all_of(scales, slot));
  p->builder.add(schedule::kUnpack, std::move(reads),
                 {part(p->caller.output, chunk, p->request, piece)}, {p->agreed});
}
void unpack_piece(Plan* p, uint32_t piece, BufferId scales) {
  unpack_chunk(p, p->rank(), piece, scales);
  for (int from : p->builder.recv_order()) unpack_chunk(p, from, piece, scales);
}

}  // namespace

Schedule onebit_direct_allreduce(const Request& request) {
  Plan p = plan(request);
  add_worker_buffers(&p);
  add_gather_buffers(&p);
  agree(&p, all_of(p.caller.input), all_of(p.error));
  post_scatter(&p);
  post_gather(&p);
  if (request.block_scale) {
    // A piece's second half stands before the packing of the piece after next: averages go out as
    // soon as they exist, while one more piece of the first half keeps the wire busy.
    for (uint32_t step = 0; step < p.pieces() + 2; step++) {
      if (step >= 1 && step - 1 < p.pieces()) {
        average_piece(&p, step - 1);
        server_pack_piece(&p, step - 1);
      }
      if (step < p.pieces()) pack_piece(&p, step);
      if (step >= 2) unpack_piece(&p, step - 2, p.scales_in);
    }
    return p.builder.finish();
  }
  p.server_scales =
      p.add_buffer("server_scales", Role::scratch, schedule::kFloatUnit, kScales, p.chunks(), 1);
  for (uint32_t piece = 0; piece < p.pieces(); piece++) {
    pack_piece(&p, piece);
    if (piece >= 1) average_piece(&p, piece - 1);
  }
  average_piece(&p, p.pieces() - 1);
  p.builder.add(schedule::kServerScale, {{p.server_error, 0, p.own(), p.chunks(), 0, 1}},
                {all_of(p.server_scales, p.own())});
  exchange_slots(&p, p.server_scales, p.server_scale_message());
  for (uint32_t piece = 0; piece < p.pieces(); piece++) server_pack_piece(&p, piece);
  for (uint32_t piece = 0; piece < p.pieces(); piece++) unpack_piece(&p, piece, p.server_scales);
  return p.builder.finish();
}

Schedule onebit_direct_reduce_scatter(const Request& request) {
  Plan p = plan(request);
  add_worker_buffers(&p);
  agree(&p, all_of(p.caller.input), all_of(p.error));
  post_scatter(&p);
  for (uint32_t step = 0; step <= p.pieces(); step++) {
    if (step < p.pieces()) pack_piece(&p, step);
    if (step == 0) continue;
    std::vector<Range> reads = ranks_bits(p, step - 1);
    append_scales(p, &reads);
    p.builder.add(schedule::kTakeAverage, std::move(reads),
                  {part(p.caller.output, p.rank(), request, step - 1)});
  }
  return p.builder.finish();
}

Schedule onebit_direct_allgather(const Request& request) {
  Plan p = plan(request);
  add_gather_buffers(&p);
  const Range input = {p.caller.input, 0, p.own(), p.chunks(), 0, 1};
  const Range error = {p.server_error, 0, p.own(), p.chunks(), 0, 1};
  agree(&p, input, error);
  post_gather(&p);
  for (uint32_t piece = 0; piece < p.pieces(); piece++) {
    const Range piece_error = part(p.server_error, p.rank(), request, piece);
    std::vector<Range> reads = {part(p.caller.input, p.rank(), request, piece), piece_error,
                                all_of(p.verdict)};
    if (!request.block_scale) reads.push_back(all_of(p.scales_in, p.own()));
    p.builder.add(schedule::kPack, std::move(reads),
                  {part(p.gather_out, p.rank(), request, piece), piece_error});
    send_result(&p, piece);
  }
  for (uint32_t piece = 0; piece < p.pieces(); piece++) unpack_piece(&p, piece, p.scales_in);
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
