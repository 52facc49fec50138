// 1-bit allreduce over nodes of several ranks: exact inside the node, 1 bit between nodes along
// rails, and the packed result inside the node. Equations: onebit_hier.h, 1-bit Adam (arXiv
// 2102.02888).
//
// Signs of a node's sums leave as soon as they exist; no error and no output is written before
// every rank knows the verdict of all rails. A rank that codes hands on what its rail brings while
// it is still averaging.
#include "runtime/algorithms/onebit_hier.h"

namespace bitrail::algorithms {

using namespace onebit;  // NOLINT(google-build-using-namespace): one subject in two files

namespace {

void hand_out(HierPlan* p, int of, uint32_t piece) {
  for (int to : p->other_locals())
    p->builder.send(p->rank_at(to), p->result_message(of, piece),
                    p->result(p->chunk(p->local, of), piece));
}

// Results of the other nodes on the own rail, handed on, and of the other rails.
void take_results(HierPlan* p, uint32_t piece) {
  if (p->codes()) {
    for (int of : p->other_nodes()) {
      p->builder.recv(p->rail_peer(of), p->gather_message(piece),
                      p->result(p->chunk(p->local, of), piece));
      hand_out(p, of, piece);
    }
  }
  for (int rail = 0; rail < p->rails; rail++) {
    if (rail == p->local) continue;
    for (int of = 0; of < p->placement.nodes(); of++)
      p->builder.recv(p->rank_at(rail), p->result_message(of, piece),
                      p->result(p->chunk(rail, of), piece));
  }
}

void average_hier(HierPlan* p, uint32_t piece) {
  const Range accumulator = p->own_error(piece);
  std::vector<Range> reads;
  for (uint32_t slot = 0; slot < p->nodes(); slot++)
    reads.push_back(p->part_of(p->wire_in, p->own_chunk(), piece, slot));
  reads.push_back(accumulator);
  for (uint32_t slot = 0; slot < p->nodes() && !p->request.block_scale; slot++)
    reads.push_back(all_of(p->scales_in, slot));
  p->builder.add(schedule::kUnpackAverage, std::move(reads), {accumulator}, {p->agreed});
}

// The own chunk's second half: to the rail and to the node.
void serve_hier(HierPlan* p, uint32_t piece) {
  average_hier(p, piece);
  const Range error = p->own_error(piece);
  const Range bits = p->result(p->own_chunk(), piece);
  if (p->request.block_scale) {
    p->builder.add(schedule::kServerPack, {error}, {bits, error});
  } else {
    add_summing(&p->builder, schedule::kServerSign, &p->server_sums, {error}, {bits});
  }
  for (int of : p->other_nodes()) p->builder.send(p->rail_peer(of), p->gather_message(piece), bits);
  hand_out(p, p->node, piece);
}

// Errors that the early signs left behind.
void settle_hier(HierPlan* p, uint32_t piece) {
  std::vector<int> order = p->other_nodes();
  order.push_back(p->node);
  for (int of : order) {
    const Range error = p->shared(p->error, of, piece);
    std::vector<Range> reads = {p->shared(p->sums, of, piece), error,
                                p->shared(of == p->node ? p->wire_in : p->wire_out, of, piece),
                                all_of(p->verdict)};
    if (!p->request.block_scale)
      reads.push_back(all_of(p->scales_in, static_cast<uint32_t>(p->node)));
    p->builder.add(schedule::kResidual, std::move(reads), {error});
  }
}

void unpack_hier(HierPlan* p, uint32_t piece) {
  // The own node's chunks first: they are there first.
  std::vector<int> order = {p->node};
  for (int of : p->other_nodes()) order.push_back(of);
  for (int of : order)
    for (int i = 0; i < p->rails; i++) {
      const uint32_t chunk = p->chunk((p->local + i) % p->rails, of);
      std::vector<Range> reads = {p->result(chunk, piece)};
      if (!p->request.block_scale) reads.push_back(all_of(p->server_scales, chunk));
      p->builder.add(schedule::kUnpack, std::move(reads),
                     {p->part_of(p->caller.output, chunk, piece, 0)}, {p->agreed});
    }
}

// Of the own chunk from the sums, of the rail's others by messages.
void give_server_scales(HierPlan* p) {
  const Range own = all_of(p->server_scales, p->own_chunk());
  p->builder.add(schedule::kServerScale, {all_of(p->server_sums.buffer)}, {own});
  for (int of : p->other_nodes()) {
    p->builder.recv(p->rail_peer(of), p->server_scale_message(),
                    all_of(p->server_scales, p->chunk(p->local, of)));
    p->builder.send(p->rail_peer(of), p->server_scale_message(), own);
  }
  for (int of = 0; of < p->placement.nodes(); of++)
    for (int to : p->other_locals())
      p->builder.send(p->rank_at(to), p->result_scale_message(of),
                      all_of(p->server_scales, p->chunk(p->local, of)));
}
void take_server_scales(HierPlan* p) {
  for (int rail = 0; rail < p->rails; rail++) {
    if (rail == p->local) continue;
    for (int of = 0; of < p->placement.nodes(); of++)
      p->builder.recv(p->rank_at(rail), p->result_scale_message(of),
                      all_of(p->server_scales, p->chunk(rail, of)));
  }
}

Schedule build(const Request& request, const char* name, int rails) {
  HierPlan p = make_hier_plan(request, name, rails);
  open_hier(&p);
  for (uint32_t piece = 0; piece < p.pieces; piece++) take_results(&p, piece);
  for (uint32_t step = 0; step <= p.pieces; step++) {
    if (step < p.pieces && p.codes()) serve_hier(&p, step);
    if (step == 0 || !request.block_scale) continue;
    if (p.codes()) settle_hier(&p, step - 1);
    unpack_hier(&p, step - 1);
  }
  if (request.block_scale) return p.builder.finish();
  if (p.codes()) give_server_scales(&p);
  take_server_scales(&p);
  for (uint32_t piece = 0; piece < p.pieces; piece++) {
    if (p.codes()) {
      const Range error = p.own_error(piece);
      p.builder.add(schedule::kServerResidual, {error, all_of(p.server_scales, p.own_chunk())},
                    {error});
      settle_hier(&p, piece);
    }
    unpack_hier(&p, piece);
  }
  return p.builder.finish();
}

}  // namespace

bool onebit_hier_applies(const Request& request) {
  const topology::Placement* placement = request.placement;
  return placement != nullptr && placement->world_size() == request.world_size &&
         placement->nodes() > 1 && placement->most() > 1;
}

int onebit_hier_rails(const Request& request) { return request.placement->fewest(); }
int onebit_leader_rails(const Request&) { return 1; }

Schedule onebit_hier_allreduce(const Request& request) {
  return build(request, "onebit_hier", onebit_hier_rails(request));
}

Schedule onebit_leader_allreduce(const Request& request) {
  return build(request, "onebit_leader", 1);
}

}  // namespace bitrail::algorithms
