// 1-bit collectives, direct: chunk j of every rank goes to rank j packed to sign bits, rank j
// averages, packs again, and the result goes straight to everybody. Equations: 1-bit Adam,
// arXiv 2102.02888; error feedback at both packings:
//
//   b = x + e, s = scale(b), q = sign(b), e = b - s q                (worker, whole vector)
//   a = (1/W) sum over ranks in order of s_p q_p + E                 (server, own chunk)
//   S = scale(a), Q = sign(a), E = a - S Q;  y = S Q                 (server, own chunk)
//
// The verdict comes first: with the scales travels whether everything was finite, and no error or
// output is written before all ranks' flags are in. Signs change nothing, so those of the first
// pieces are on the wire while the scales are still taken; their error follows later.
//
// Segment scales: the signs of an average leave as soon as it exists, its scale S when the whole
// chunk's is known, and outputs and errors wait for that. Block scales lie inside the records, so
// piece k is complete while piece k+1 is still scattered.
#include "runtime/algorithms/onebit_plan.h"

namespace bitrail::algorithms {

using namespace onebit;  // NOLINT(google-build-using-namespace): one subject in two files

namespace {

void add_gather_buffers(Plan* p) {
  p->server_error = p->add_buffer("server_error", Role::server_error, schedule::kFloatUnit,
                                  kElements, 1, p->chunks());
  p->gather_out =
      p->add_buffer("gather_out", Role::scratch, p->bit_unit(), kElements, 1, p->chunks());
  p->gather_in =
      p->add_buffer("gather_in", Role::scratch, p->bit_unit(), kElements, p->chunks(), p->chunks());
}

// Receives do not wait for anything: the peers' pieces find their place open.
void post_gather(Plan* p) {
  for (uint32_t piece = 0; piece < p->pieces(); piece++)
    for (int from : p->builder.recv_order())
      p->builder.recv(from, p->gather_message(piece),
                      p->piece_of(p->gather_in, from, piece, static_cast<uint32_t>(from)));
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
  const Range accumulator = p->piece_of(p->server_error, p->rank(), piece);
  std::vector<Range> reads = ranks_bits(*p, piece);
  reads.push_back(accumulator);
  append_scales(*p, &reads);
  p->builder.add(schedule::kUnpackAverage, std::move(reads), {accumulator}, {p->agreed});
}

void send_result(Plan* p, uint32_t piece) {
  for (int to : p->builder.send_order())
    p->builder.send(to, p->gather_message(piece), p->piece_of(p->gather_out, p->rank(), piece));
}

// The second half of a piece: to everybody, with its scale inside (blocks) or without (segments).
void serve_piece(Plan* p, uint32_t piece) {
  average_piece(p, piece);
  const Range error = p->piece_of(p->server_error, p->rank(), piece);
  const Range bits = p->piece_of(p->gather_out, p->rank(), piece);
  if (p->request.block_scale) {
    p->builder.add(schedule::kServerPack, {error}, {bits, error});
  } else {
    add_summing(&p->builder, schedule::kServerSign, &p->server_sums, {error}, {bits});
  }
  send_result(p, piece);
}

void unpack_chunk(Plan* p, int chunk, uint32_t piece, BufferId scales,
                  std::vector<schedule::OperationId> after) {
  const auto slot = static_cast<uint32_t>(chunk);
  std::vector<Range> reads = {chunk == p->rank()
                                  ? part(p->gather_out, chunk, p->request, piece)
                                  : part(p->gather_in, chunk, p->request, piece, slot)};
  if (!p->request.block_scale) reads.push_back(all_of(scales, slot));
  p->builder.add(schedule::kUnpack, std::move(reads),
                 {part(p->caller.output, chunk, p->request, piece)}, std::move(after));
}
void unpack_piece(Plan* p, uint32_t piece, BufferId scales, const std::vector<OperationId>& after) {
  unpack_chunk(p, p->rank(), piece, scales, after);
  for (int from : p->builder.recv_order()) unpack_chunk(p, from, piece, scales, after);
}

}  // namespace

Schedule onebit_direct_allreduce(const Request& request) {
  Plan p = make_plan(request);
  add_worker_buffers(&p);
  add_gather_buffers(&p);
  if (!request.block_scale)
    p.server_sums.buffer =
        p.add_buffer("server_sums", Role::scratch, schedule::kDoubleUnit, kScales, 1, 1);
  open_scatter(&p);
  post_gather(&p);
  // A piece's second half stands before the packing of the piece after next: averages go out as
  // soon as they exist, while one more piece of the first half keeps the wire busy.
  for (uint32_t step = 0; step < p.pieces() + 2; step++) {
    if (step >= 1 && step - 1 < p.pieces()) serve_piece(&p, step - 1);
    if (step < p.pieces()) pack_piece(&p, step);
    if (request.block_scale && step >= 2)
      unpack_piece(&p, step - 2, p.scales_in, settle_piece(&p, step - 2));
  }
  if (request.block_scale) return p.builder.finish();
  p.server_scales =
      p.add_buffer("server_scales", Role::scratch, schedule::kFloatUnit, kScales, p.chunks(), 1);
  p.builder.add(schedule::kServerScale, {all_of(p.server_sums.buffer)},
                {all_of(p.server_scales, p.own())});
  exchange_slots(&p, p.server_scales, p.server_scale_message());
  for (uint32_t piece = 0; piece < p.pieces(); piece++) {
    const Range error = p.piece_of(p.server_error, p.rank(), piece);
    p.builder.add(schedule::kServerResidual, {error, all_of(p.server_scales, p.own())}, {error});
    unpack_piece(&p, piece, p.server_scales, settle_piece(&p, piece));
  }
  return p.builder.finish();
}

Schedule onebit_direct_reduce_scatter(const Request& request) {
  Plan p = make_plan(request);
  add_worker_buffers(&p);
  open_scatter(&p);
  for (uint32_t step = 0; step <= p.pieces(); step++) {
    if (step < p.pieces()) pack_piece(&p, step);
    if (step == 0) continue;
    std::vector<Range> reads = ranks_bits(p, step - 1);
    append_scales(p, &reads);
    p.builder.add(schedule::kTakeAverage, std::move(reads),
                  {part(p.caller.output, p.rank(), request, step - 1)}, settle_piece(&p, step - 1));
  }
  return p.builder.finish();
}

Schedule onebit_direct_allgather(const Request& request) {
  Plan p = make_plan(request);
  add_gather_buffers(&p);
  for (uint32_t piece = 0; piece < p.pieces(); piece++) scan(&p, p.rank(), piece, p.server_error);
  agree(&p);
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
  for (uint32_t piece = 0; piece < p.pieces(); piece++)
    unpack_piece(&p, piece, p.scales_in, {p.agreed});
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
