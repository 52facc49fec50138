// Hierarchical allreduce: summed in the node, exchanged between nodes along rails, given out in the
// node. Each node sends 2 (N-1)/N of the vector, however many ranks it has.
//
// The vector is cut into a chunk a rail; in every node one rank serves rail r. A chunk is cut into
// rounds of one piece a node; node n has the last word over its piece of each round:
//
//   scatter   every rank gives its pieces of rail r to the node's server of r, which sums them
//   exchange  the servers of r give the sum of node n's piece to node n's server, which sums them
//   spread    that one gives the result to the other servers of r
//   gather    each server gives the pieces of its rail to its node
//
// A piece passes on as soon as it is there, so the stages of several rounds run at once. With one
// round the stages inside the node move the whole rail in one message.
//
// `leader` is the same with one rail.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::BufferId;
using schedule::Builder;
using schedule::kElements;
using schedule::kReduce;
using schedule::OperationId;
using schedule::Range;
using schedule::Role;

namespace {

enum class Stage : uint8_t { scatter, exchange, spread, gather };

struct Plan {
  const Request& request;
  Nodes nodes;
  uint32_t rails;
  Builder builder;
  CallerBuffers caller = {};
  uint32_t depth = 1;                     // rounds in flight
  std::vector<int> served = {};           // the rails that this rank serves
  BufferId collected = 0;                 // pieces of the other ranks of the node
  BufferId sums = 0;                      // the node's, for other nodes
  BufferId arrived = 0;                   // other nodes' sums of the own pieces
  std::vector<OperationId> settled = {};  // by round: with it the round's scratch is free again

  uint32_t rounds() const { return pieces_of(request); }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes.count()); }
  uint32_t node_pieces() const { return rounds() * node_count(); }
  bool single() const { return rounds() == 1; }
  int server(int node, int rail) const { return nodes.server(node, rail); }
  bool serves(int rail) const { return server(nodes.own(), rail) == request.rank; }
  bool alone() const { return nodes.mate_count() == 0; }

  uint32_t message(Stage stage, int rail, uint32_t round, int node) const {
    return ((static_cast<uint32_t>(stage) * rails + static_cast<uint32_t>(rail)) * rounds() +
            round) *
               node_count() +
           static_cast<uint32_t>(node);
  }
  // The piece of `node` in `round`; inside the node, with one round, the whole rail.
  Range piece(BufferId buffer, int rail, uint32_t round, int node, uint32_t slot = 0) const {
    return {buffer,
            slot,
            static_cast<uint32_t>(rail),
            rails,
            round * node_count() + static_cast<uint32_t>(node),
            node_pieces()};
  }
  Range local(BufferId buffer, int rail, uint32_t round, int node, uint32_t slot = 0) const {
    if (single()) return {buffer, slot, static_cast<uint32_t>(rail), rails, 0, 1};
    return piece(buffer, rail, round, node, slot);
  }
  // Slots: of the served rail number `i`, for a piece of `node` (inside the node, with one round,
  // for all of them).
  uint32_t local_slot(uint32_t place, uint32_t round, int node) const {
    if (single()) return place;
    return (place * depth + round % depth) * node_count() + static_cast<uint32_t>(node);
  }
  uint32_t arrived_slot(uint32_t i, uint32_t round, int from) const {
    return (i * (node_count() - 1) + nodes.node_index(from)) * depth + round % depth;
  }
};

BufferId add_scratch(Plan* p, const char* name, uint32_t slots, uint32_t pieces) {
  return p->builder.buffer(
      {name, Role::scratch, schedule::kDataUnit, kElements, std::max(slots, 1U), p->rails, pieces});
}

Plan plan(const Request& request, const char* name, int rails) {
  Plan p{request, nodes_of(request), static_cast<uint32_t>(rails),
         Builder(schedule_name(name, request), request.rank, request.world_size)};
  p.caller = caller_buffers(&p.builder, request);
  p.depth = std::min(request.depth ? request.depth : kNodeDepth, p.rounds());
  for (int rail = 0; rail < rails; rail++)
    if (p.serves(rail)) p.served.push_back(rail);
  const auto served = static_cast<uint32_t>(p.served.size());
  if (served == 0) return p;
  const uint32_t per_place = p.single() ? 1 : p.depth * p.node_count();
  const uint32_t local_pieces = p.single() ? 1 : p.node_pieces();
  if (!p.alone()) {
    p.collected =
        add_scratch(&p, "collected", served * p.nodes.mate_count() * per_place, local_pieces);
    p.sums = add_scratch(&p, "sums", served * per_place, local_pieces);
  }
  p.arrived = add_scratch(&p, "arrived", served * (p.node_count() - 1) * p.depth, p.node_pieces());
  return p;
}

Range collected(const Plan& p, uint32_t i, int mate, uint32_t round, int node) {
  const uint32_t place = i * p.nodes.mate_count() + p.nodes.mate_index(mate);
  return p.local(p.collected, p.served[i], round, node, p.local_slot(place, round, node));
}

// What the ranks of the node hold of a piece, in rank order.
std::vector<Range> node_sources(const Plan& p, uint32_t i, uint32_t round, int node) {
  std::vector<Range> sources;
  for (int rank : p.nodes.ranks_of(p.nodes.own()))
    sources.push_back(rank == p.request.rank ? p.local(p.caller.input, p.served[i], round, node)
                                             : collected(p, i, rank, round, node));
  return sources;
}

// The piece's exchange inside the node: to the servers, and at the served rails from all.
void scatter(Plan* p, uint32_t round, int node) {
  std::vector<OperationId> paced;
  if (round >= p->depth) paced.push_back(p->settled[round - p->depth]);
  for (uint32_t i = 0; i < p->served.size(); i++)
    for (int mate : p->nodes.mates())
      p->builder.recv(mate, p->message(Stage::scatter, p->served[i], round, node),
                      collected(*p, i, mate, round, node));
  for (int turn = 0; turn < static_cast<int>(p->rails); turn++) {
    // Each rank begins with another server.
    const int rail =
        (turn + p->nodes.placement.local_of(p->request.rank)) % static_cast<int>(p->rails);
    if (p->serves(rail)) continue;
    p->builder.send(p->server(p->nodes.own(), rail), p->message(Stage::scatter, rail, round, node),
                    p->local(p->caller.input, rail, round, node), paced);
  }
}

// Where the node's sum of `node`'s piece stands.
Range node_sum(const Plan& p, uint32_t i, uint32_t round, int node) {
  if (p.alone()) return p.piece(p.caller.input, p.served[i], round, node);
  return p.piece(p.sums, p.served[i], round, node, p.local_slot(i, round, node));
}

void sum_node(Plan* p, uint32_t i, uint32_t round, int node) {
  if (p->alone()) return;
  p->builder.add(kReduce, node_sources(*p, i, round, node),
                 {p->local(p->sums, p->served[i], round, node, p->local_slot(i, round, node))});
}

void receive_sums(Plan* p, uint32_t round) {
  for (uint32_t i = 0; i < p->served.size(); i++)
    for (int from : p->nodes.others())
      p->builder.recv(p->server(from, p->served[i]),
                      p->message(Stage::exchange, p->served[i], round, p->nodes.own()),
                      p->piece(p->arrived, p->served[i], round, p->nodes.own(),
                               p->arrived_slot(i, round, from)));
}

void send_sum(Plan* p, uint32_t i, uint32_t round, int node) {
  p->builder.send(p->server(node, p->served[i]),
                  p->message(Stage::exchange, p->served[i], round, node),
                  node_sum(*p, i, round, node));
}

// The own piece: the last sum, and the result to the other nodes.
void conclude(Plan* p, uint32_t i, uint32_t round) {
  const int rail = p->served[i];
  const int own = p->nodes.own();
  std::vector<Range> sources = p->single() ? std::vector<Range>{node_sum(*p, i, round, own)}
                                           : node_sources(*p, i, round, own);
  for (int node = 0; node < p->nodes.count(); node++)
    if (node != own)
      sources.push_back(p->piece(p->arrived, rail, round, own, p->arrived_slot(i, round, node)));
  const Range result = p->piece(p->caller.output, rail, round, own);
  p->settled[round] = p->builder.add(kReduce, std::move(sources), {result});
  for (int node : p->nodes.others())
    p->builder.send(p->server(node, rail), p->message(Stage::spread, rail, round, own), result);
}

void receive_result(Plan* p, uint32_t i, uint32_t round, int node) {
  const int rail = p->served[i];
  p->builder.recv(p->server(node, rail), p->message(Stage::spread, rail, round, node),
                  p->piece(p->caller.output, rail, round, node));
}

void give_out(Plan* p, uint32_t i, uint32_t round, int node) {
  const int rail = p->served[i];
  for (int mate : p->nodes.mates())
    p->builder.send(mate, p->message(Stage::gather, rail, round, node),
                    p->local(p->caller.output, rail, round, node));
}

void gather(Plan* p, uint32_t round, int node) {
  for (int rail = 0; rail < static_cast<int>(p->rails); rail++) {
    if (p->serves(rail)) continue;
    const OperationId id = p->builder.recv(p->server(p->nodes.own(), rail),
                                           p->message(Stage::gather, rail, round, node),
                                           p->local(p->caller.output, rail, round, node));
    if (p->served.empty()) p->settled[round] = id;
  }
}

// All stages of a round; inside the node piece by piece.
void add_round(Plan* p, uint32_t round) {
  const auto served = static_cast<uint32_t>(p->served.size());
  const int own = p->nodes.own();
  receive_sums(p, round);
  for (int node : p->nodes.others()) {
    scatter(p, round, node);
    for (uint32_t i = 0; i < served; i++) {
      sum_node(p, i, round, node);
      send_sum(p, i, round, node);
    }
  }
  scatter(p, round, own);
  for (uint32_t i = 0; i < served; i++) {
    conclude(p, i, round);
    give_out(p, i, round, own);
  }
  gather(p, round, own);
  for (int node : p->nodes.others()) {
    for (uint32_t i = 0; i < served; i++) {
      receive_result(p, i, round, node);
      give_out(p, i, round, node);
    }
    gather(p, round, node);
  }
}

// One round: whole rails inside the node.
void add_single(Plan* p) {
  const auto served = static_cast<uint32_t>(p->served.size());
  receive_sums(p, 0);
  scatter(p, 0, 0);
  for (uint32_t i = 0; i < served; i++) {
    sum_node(p, i, 0, 0);
    for (int node : p->nodes.others()) send_sum(p, i, 0, node);
  }
  for (uint32_t i = 0; i < served; i++) {
    conclude(p, i, 0);
    for (int node : p->nodes.others()) receive_result(p, i, 0, node);
    give_out(p, i, 0, 0);
  }
  gather(p, 0, 0);
}

Schedule over_rails(const Request& request, const char* name, int rails) {
  Plan p = plan(request, name, rails);
  p.settled.resize(p.rounds());
  if (p.single()) {
    add_single(&p);
  } else {
    for (uint32_t round = 0; round < p.rounds(); round++) add_round(&p, round);
  }
  return p.builder.finish();
}

}  // namespace

Schedule hier_allreduce(const Request& request) {
  return over_rails(request, "hier", rails_of(*request.placement));
}

Schedule leader_allreduce(const Request& request) { return over_rails(request, "leader", 1); }

}  // namespace bitrail::algorithms
