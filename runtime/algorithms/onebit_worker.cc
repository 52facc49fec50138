// The worker's half of the 1-bit schedules.
#include "runtime/algorithms/onebit_plan.h"

namespace bitrail::algorithms::onebit {
namespace {

// Where the bits of `chunk` stand: the own chunk's are received from nobody.
Range bits_of(const Plan& p, int chunk, uint32_t piece) {
  return chunk == p.rank() ? p.piece_of(p.wire_in, chunk, piece, p.own())
                           : p.piece_of(p.wire_out, chunk, piece);
}

// The chunks in the order in which they are sent, the own one last.
std::vector<int> chunk_order(const Plan& p) {
  std::vector<int> order = p.builder.send_order();
  order.push_back(p.rank());
  return order;
}

void send_bits(Plan* p, int chunk, uint32_t piece) {
  if (chunk == p->rank()) return;
  p->builder.send(chunk, p->scatter_message(piece), bits_of(*p, chunk, piece));
}

void receive_piece(Plan* p, uint32_t piece) {
  for (int from : p->builder.recv_order())
    p->builder.recv(from, p->scatter_message(piece),
                    p->piece_of(p->wire_in, p->rank(), piece, static_cast<uint32_t>(from)));
}

void sign(Plan* p, int chunk, uint32_t piece) {
  add_summing(&p->builder, schedule::kSign, &p->worker_sums,
              {p->piece_of(p->caller.input, chunk, piece), p->piece_of(p->error, chunk, piece)},
              {bits_of(*p, chunk, piece)});
  send_bits(p, chunk, piece);
}

void append_own_scale(const Plan& p, std::vector<Range>* reads) {
  if (!p.request.block_scale) reads->push_back(all_of(p.scales_in, p.own()));
}

}  // namespace

void add_summing(Builder* builder, const schedule::OperationKind& kind, Sums* sums,
                 std::vector<Range> reads, std::vector<Range> writes) {
  schedule::Operation operation;
  operation.kind = &kind;
  operation.reads = std::move(reads);
  if (sums->begun) operation.reads.push_back(all_of(sums->buffer));
  operation.writes = std::move(writes);
  operation.writes.push_back(all_of(sums->buffer));
  operation.attributes = {sums->begun ? 0 : 1};
  sums->begun = true;
  builder->add(std::move(operation));
}

Plan make_plan(const Request& request) {
  Plan p{request,
         Builder(schedule_name("onebit_direct", request), request.rank, request.world_size),
         {}};
  p.caller = caller_buffers(&p.builder, request);
  p.worker_sums.buffer = p.add_buffer("sums", Role::scratch, schedule::kDoubleUnit, kScales, 1, 1);
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

void exchange_slots(Plan* p, BufferId slots, uint32_t message) {
  for (int from : p->builder.recv_order())
    p->builder.recv(from, message, all_of(slots, static_cast<uint32_t>(from)));
  for (int to : p->builder.send_order()) p->builder.send(to, message, all_of(slots, p->own()));
}

void scan(Plan* p, int chunk, uint32_t piece, BufferId error) {
  add_summing(&p->builder, schedule::kScan, &p->worker_sums,
              {p->piece_of(p->caller.input, chunk, piece), p->piece_of(error, chunk, piece)}, {});
}

void agree(Plan* p) {
  p->builder.add(schedule::kScale, {all_of(p->worker_sums.buffer)},
                 {all_of(p->scales_in, p->own())});
  exchange_slots(p, p->scales_in, p->scale_message());
  std::vector<Range> flags;
  for (uint32_t slot = 0; slot < p->chunks(); slot++) flags.push_back(all_of(p->scales_in, slot));
  p->agreed = p->builder.add(schedule::kVerdict, std::move(flags), {all_of(p->verdict)});
}

void open_scatter(Plan* p) {
  for (uint32_t piece = 0; piece < p->early(); piece++) receive_piece(p, piece);
  for (uint32_t piece = 0; piece < p->pieces(); piece++)
    for (int chunk : chunk_order(*p)) {
      if (piece < p->early()) {
        sign(p, chunk, piece);
      } else {
        scan(p, chunk, piece, p->error);
      }
    }
  agree(p);
  for (uint32_t piece = p->early(); piece < p->pieces(); piece++) receive_piece(p, piece);
}

void pack_piece(Plan* p, uint32_t piece) {
  if (piece < p->early()) return;
  for (int chunk : chunk_order(*p)) {
    const Range error = p->piece_of(p->error, chunk, piece);
    std::vector<Range> reads = {p->piece_of(p->caller.input, chunk, piece), error,
                                all_of(p->verdict)};
    append_own_scale(*p, &reads);
    p->builder.add(schedule::kPack, std::move(reads), {bits_of(*p, chunk, piece), error});
    send_bits(p, chunk, piece);
  }
}

std::vector<OperationId> settle_piece(Plan* p, uint32_t piece) {
  std::vector<OperationId> done = {p->agreed};
  if (piece >= p->early()) return done;
  for (int chunk : chunk_order(*p)) {
    const Range error = p->piece_of(p->error, chunk, piece);
    std::vector<Range> reads = {p->piece_of(p->caller.input, chunk, piece), error,
                                bits_of(*p, chunk, piece), all_of(p->verdict)};
    append_own_scale(*p, &reads);
    done.push_back(p->builder.add(schedule::kResidual, std::move(reads), {error}));
  }
  return done;
}

}  // namespace bitrail::algorithms::onebit
