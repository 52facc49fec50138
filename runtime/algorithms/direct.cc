// Direct reduce-scatter and all-gather: rank r sends chunk j to rank j, rank j sums all ranks'
// pieces in rank order in one pass, and the result goes straight into everybody's output.
//
//   out[j] = in_0[j] op in_1[j] op ... op in_{W-1}[j],  always in this order, so bit-identical on
//   all ranks and from run to run.
//
// Pieces make receives, sums and the second half overlap. Received pieces lie in scratch of
// `depth` pieces per peer: small scratch stays in the L2 cache between arrival and sum; more depth
// hides more latency.
#include <algorithm>

#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::kElements;
using schedule::kReduce;
using schedule::OperationId;
using schedule::Range;
using schedule::Role;

namespace {

constexpr uint32_t kDepth = 4;

// Messages of one ordered pair: pieces to the reducer first, then pieces of the result.
uint32_t scatter_message(const Request&, uint32_t piece) { return piece; }
uint32_t gather_message(const Request& request, uint32_t piece) {
  return pieces_of(request) + piece;
}

struct Plan {
  const Request& request;
  Builder builder;
  CallerBuffers caller;
  schedule::BufferId scratch = 0;
  uint32_t depth = 1;
  std::vector<OperationId> reduced = {};  // by piece
};

Plan plan(const Request& request) {
  Plan p{request, Builder(schedule_name("direct", request), request.rank, request.world_size), {}};
  p.caller = caller_buffers(&p.builder, request);
  p.depth = std::min(request.depth ? request.depth : kDepth, pieces_of(request));
  return p;
}

void add_scratch(Plan* p) {
  const auto chunks = static_cast<uint32_t>(p->request.world_size);
  p->scratch = p->builder.buffer({"received", Role::scratch, schedule::kDataUnit, kElements,
                                  chunks * p->depth, chunks,
                                  p->depth < pieces_of(p->request) ? pieces_of(p->request) : 1});
}

// Where piece k from rank p waits for its sum: its own slot of a ring, or, when the ring is as long
// as the chunk, its place in a whole chunk.
Range received(const Plan& p, int from, uint32_t piece) {
  const bool ring = p.depth < pieces_of(p.request);
  const auto peer = static_cast<uint32_t>(from);
  return part(p.scratch, p.request.rank, p.request, piece,
              ring ? peer * p.depth + piece % p.depth : peer);
}

void scatter_piece(Plan* p, uint32_t piece) {
  const Request& request = p->request;
  // Not further ahead of the sums than the peers' scratch is deep: what arrives earlier would have
  // to be stored and copied by the transport.
  std::vector<OperationId> paced;
  if (piece >= p->depth) paced.push_back(p->reduced[piece - p->depth]);
  for (int from : p->builder.recv_order())
    p->builder.recv(from, scatter_message(request, piece), received(*p, from, piece));
  for (int to : p->builder.send_order())
    p->builder.send(to, scatter_message(request, piece), part(p->caller.input, to, request, piece),
                    paced);
}

void reduce_piece(Plan* p, uint32_t piece) {
  std::vector<Range> sources;
  sources.reserve(static_cast<size_t>(p->request.world_size));
  for (int from = 0; from < p->request.world_size; from++)
    sources.push_back(from == p->request.rank ? part(p->caller.input, from, p->request, piece)
                                              : received(*p, from, piece));
  p->reduced.push_back(p->builder.add(
      kReduce, std::move(sources), {part(p->caller.output, p->request.rank, p->request, piece)}));
}

void gather_piece(Plan* p, schedule::BufferId own, uint32_t piece) {
  const Request& request = p->request;
  for (int to : p->builder.send_order())
    p->builder.send(to, gather_message(request, piece), part(own, request.rank, request, piece));
  for (int from : p->builder.recv_order())
    p->builder.recv(from, gather_message(request, piece),
                    part(p->caller.output, from, request, piece));
}

Schedule copy_alone(Plan* p) {
  if (!p->request.in_place)
    p->builder.add(schedule::kCopy, {all_of(p->caller.input)}, {all_of(p->caller.output)});
  return p->builder.finish();
}

}  // namespace

Schedule direct_allreduce(const Request& request) {
  Plan p = plan(request);
  if (request.world_size == 1) return copy_alone(&p);
  add_scratch(&p);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    scatter_piece(&p, piece);
    reduce_piece(&p, piece);
    gather_piece(&p, p.caller.output, piece);
  }
  return p.builder.finish();
}

Schedule direct_reduce_scatter(const Request& request) {
  Plan p = plan(request);
  if (request.world_size == 1) return copy_alone(&p);
  add_scratch(&p);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    scatter_piece(&p, piece);
    reduce_piece(&p, piece);
  }
  return p.builder.finish();
}

Schedule direct_allgather(const Request& request) {
  Plan p = plan(request);
  if (request.world_size == 1) return copy_alone(&p);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++)
    gather_piece(&p, p.caller.input, piece);
  if (!request.in_place)
    p.builder.add(schedule::kCopy,
                  {{p.caller.input, 0, static_cast<uint32_t>(request.rank),
                    static_cast<uint32_t>(request.world_size), 0, 1}},
                  {{p.caller.output, 0, static_cast<uint32_t>(request.rank),
                    static_cast<uint32_t>(request.world_size), 0, 1}});
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
