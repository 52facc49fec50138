// The first half of the hierarchical 1-bit allreduce: values to the ranks that code them, node
// sums, their signs, the joint verdict.
#include "runtime/algorithms/onebit_hier.h"

namespace bitrail::algorithms::onebit {
namespace {

// Values in flight from a peer of the node: one piece is summed while the next arrives, and short
// vectors are sent at once.
constexpr uint32_t kDepth = 2;
constexpr uint64_t kAheadElements = 512 * 1024;
constexpr uint32_t kMostPieces = 256;

// From the one behind `own` to the one before it.
std::vector<int> others(int own, int count) {
  std::vector<int> list;
  for (int i = 1; i < count; i++) list.push_back((own + i) % count);
  return list;
}

BufferId add_buffer(HierPlan* p, const char* name, Role role, schedule::Unit unit, uint32_t slots,
                    uint32_t pieces = 1) {
  return p->builder.buffer({name, role, unit, kElements, slots, p->chunks(), pieces});
}
BufferId add_slots(HierPlan* p, const char* name, schedule::Unit unit, uint32_t slots) {
  return p->builder.buffer({name, Role::scratch, unit, kScales, slots, 1, 1});
}

void add_buffers(HierPlan* p) {
  const bool segments = !p->request.block_scale;
  const schedule::Unit bits = segments ? schedule::kBitUnit : schedule::kBitBlockUnit;
  const auto rails = static_cast<uint32_t>(p->rails);
  const auto ranks = static_cast<uint32_t>(p->placement.ranks_of(p->node).size());
  p->values_out =
      add_buffer(p, "values_out", Role::scratch, schedule::kFloatUnit, rails * p->depth, p->pieces);
  p->flags = add_slots(p, "flags", schedule::kFloatUnit, rails);
  p->verdict = add_slots(p, "verdict", schedule::kByteUnit, 1);
  p->gather = add_buffer(p, "gather", Role::scratch, bits, p->chunks());
  if (segments) p->server_scales = add_slots(p, "server_scales", schedule::kFloatUnit, p->chunks());
  if (!p->codes()) return;
  p->values_in =
      add_buffer(p, "values_in", Role::scratch, schedule::kFloatUnit, ranks * p->depth, p->pieces);
  p->sums = add_buffer(p, "node_sums", Role::scratch, schedule::kFloatUnit, p->nodes());
  p->error = add_buffer(p, "worker_error", Role::worker_error, schedule::kFloatUnit, p->nodes());
  p->server_error = add_buffer(p, "server_error", Role::server_error, schedule::kFloatUnit, 1);
  p->worker_sums.buffer = add_slots(p, "sums", schedule::kDoubleUnit, 1);
  if (segments) p->server_sums.buffer = add_slots(p, "server_sums", schedule::kDoubleUnit, 1);
  p->scales_in = add_slots(p, "scales", schedule::kFloatUnit, p->nodes());
  p->wire_out = add_buffer(p, "wire_out", Role::scratch, bits, p->nodes());
  p->wire_in = add_buffer(p, "wire_in", Role::scratch, bits, p->nodes());
}

// Where the `turn`-th piece of a peer lies in its slots.
uint32_t slot_of(const HierPlan& p, int peer, uint32_t turn) {
  return static_cast<uint32_t>(peer) * p.depth + turn % p.depth;
}

// Own values of chunk `of` of every other rail to the ranks that code them.
void give_values(HierPlan* p, int of, uint32_t piece, uint32_t turn) {
  for (int rail : p->other_locals()) {
    if (rail >= p->rails) continue;
    const uint32_t chunk = p->chunk(rail, of);
    const Range place = p->part_of(p->values_out, chunk, piece, slot_of(*p, rail, turn));
    p->loads.push_back(
        p->builder.add(schedule::kLoad, {p->part_of(p->caller.input, chunk, piece, 0)}, {place}));
    p->builder.send(p->rank_at(rail), p->value_message(of, piece), place);
  }
}

void sum_and_sign(HierPlan* p, int of, uint32_t piece, uint32_t turn) {
  const auto ranks = static_cast<int>(p->placement.ranks_of(p->node).size());
  const uint32_t chunk = p->chunk(p->local, of);
  std::vector<Range> values;
  for (int from = 0; from < ranks; from++) {
    if (from == p->local) {
      values.push_back(p->part_of(p->caller.input, chunk, piece, 0));
      continue;
    }
    values.push_back(p->part_of(p->values_in, chunk, piece, slot_of(*p, from, turn)));
    p->builder.recv(p->rank_at(from), p->value_message(of, piece), values.back());
  }
  const Range sum = p->shared(p->sums, of, piece);
  p->loads.push_back(p->builder.add(schedule::kNodeSum, std::move(values), {sum}));
  const bool own = of == p->node;
  const Range bits = p->shared(own ? p->wire_in : p->wire_out, of, piece);
  add_summing(&p->builder, schedule::kSign, &p->worker_sums, {sum, p->shared(p->error, of, piece)},
              {bits});
  if (!own) p->builder.send(p->rail_peer(of), p->scatter_message(piece), bits);
}

// A rail's scales to all its nodes, and whether it was finite there to the own node's ranks.
void tell_flags(HierPlan* p) {
  const auto own = static_cast<uint32_t>(p->node);
  p->builder.add(schedule::kScale, {all_of(p->worker_sums.buffer)}, {all_of(p->scales_in, own)});
  for (int of : p->other_nodes()) {
    p->builder.recv(p->rail_peer(of), p->scale_message(),
                    all_of(p->scales_in, static_cast<uint32_t>(of)));
    p->builder.send(p->rail_peer(of), p->scale_message(), all_of(p->scales_in, own));
  }
  std::vector<Range> scales;
  for (uint32_t slot = 0; slot < p->nodes(); slot++) scales.push_back(all_of(p->scales_in, slot));
  const Range flag = all_of(p->flags, static_cast<uint32_t>(p->local));
  p->builder.add(schedule::kJoin, std::move(scales), {flag});
  for (int to : p->other_locals()) p->builder.send(p->rank_at(to), p->flag_message(), flag);
}

// The verdict comes after all own values were read, too: a consumer may change them.
void agree_hier(HierPlan* p) {
  if (p->codes()) tell_flags(p);
  std::vector<Range> flags;
  for (int rail = 0; rail < p->rails; rail++) {
    flags.push_back(all_of(p->flags, static_cast<uint32_t>(rail)));
    if (rail != p->local) p->builder.recv(p->rank_at(rail), p->flag_message(), flags.back());
  }
  p->agreed = p->builder.add(schedule::kVerdict, std::move(flags), {all_of(p->verdict)}, p->loads);
}

}  // namespace

std::vector<int> HierPlan::other_nodes() const { return others(node, placement.nodes()); }
std::vector<int> HierPlan::other_locals() const {
  return others(local, static_cast<int>(placement.ranks_of(node).size()));
}

uint32_t hier_pieces(const Request& request, int rails) {
  const auto chunks = static_cast<uint32_t>(rails * request.placement->nodes());
  const auto ranks = static_cast<uint32_t>(request.world_size);
  return std::min(pieces_of(request) * ((ranks + chunks - 1) / chunks), kMostPieces);
}

HierPlan make_hier_plan(const Request& request, const char* name, int rails) {
  const topology::Placement& placement = *request.placement;
  HierPlan p{.request = request,
             .placement = placement,
             .rails = rails,
             .node = placement.node_of(request.rank),
             .local = placement.local_of(request.rank),
             .builder = Builder(schedule_name(name, request), request.rank, request.world_size)};
  p.pieces = hier_pieces(request, rails);
  const uint64_t turns = uint64_t{p.nodes()} * p.pieces;
  const uint64_t turn = request.count / (static_cast<uint64_t>(rails) * turns) + 1;
  const uint64_t ahead = std::clamp<uint64_t>(kAheadElements / turn, kDepth, turns);
  p.depth = request.depth != 0 ? request.depth : static_cast<uint32_t>(ahead);
  p.caller = caller_buffers(&p.builder, request);
  add_buffers(&p);
  return p;
}

void open_hier(HierPlan* p) {
  const std::vector<int> peers = p->codes() ? p->other_nodes() : std::vector<int>();
  for (uint32_t piece = 0; piece < p->pieces; piece++)
    for (int from : peers)
      p->builder.recv(p->rail_peer(from), p->scatter_message(piece),
                      p->part_of(p->wire_in, p->own_chunk(), piece, static_cast<uint32_t>(from)));
  std::vector<int> order = p->other_nodes();  // equal in the whole node
  order.push_back(p->node);
  uint32_t turn = 0;
  for (uint32_t piece = 0; piece < p->pieces; piece++)
    for (int of : order) {
      give_values(p, of, piece, turn);
      if (p->codes()) sum_and_sign(p, of, piece, turn);
      turn++;
    }
  agree_hier(p);
}

}  // namespace bitrail::algorithms::onebit
