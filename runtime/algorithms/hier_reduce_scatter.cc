// Hierarchical reduce-scatter: each node sums its ranks' chunk d at one of them, the server of d,
// and only that sum goes to rank d in its own node. Servers of a node's ranks are spread over the
// other nodes' ranks by their place, so rank l mostly talks to rank l.
//
// Each node sends the chunks of the other nodes' ranks once: (W - M)/W of the whole.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::kReduce;
using schedule::OperationId;
using schedule::Range;

namespace {

struct Plan {
  const Request& request;
  Nodes nodes;
  Builder builder;
  CallerBuffers caller = {};
  std::vector<int> served = {};  // chunks of other nodes that are summed here, the own one last
  Pool collected = {}, sums = {}, arrived = {};
  std::vector<OperationId> reduced = {};  // by piece: the own chunk's

  bool alone() const { return nodes.mate_count() == 0; }
  // The rank of `node` that sums chunk `chunk`.
  int server(int node, int chunk) const {
    return nodes.placement.node_of(chunk) == node
               ? chunk
               : nodes.server(node, nodes.placement.local_of(chunk));
  }
  uint32_t message(int chunk, uint32_t piece) const {
    return static_cast<uint32_t>(chunk) * pieces_of(request) + piece;
  }
};

Plan plan(const Request& request) {
  Plan p{request, nodes_of(request),
         Builder(schedule_name("hier", request), request.rank, request.world_size)};
  p.caller = caller_buffers(&p.builder, request);
  for (int node : p.nodes.others())
    for (int chunk : p.nodes.ranks_of(node))
      if (p.server(p.nodes.own(), chunk) == request.rank) p.served.push_back(chunk);
  p.served.push_back(request.rank);
  const auto served = static_cast<uint32_t>(p.served.size());
  if (!p.alone()) {
    p.collected = add_pool(&p.builder, "collected", served * p.nodes.mate_count(), request);
    if (served > 1) p.sums = add_pool(&p.builder, "sums", served - 1, request);
  }
  p.arrived = add_pool(&p.builder, "arrived", static_cast<uint32_t>(p.nodes.count() - 1), request);
  return p;
}

Range collected(const Plan& p, uint32_t i, int mate, uint32_t piece) {
  const uint32_t place = i * p.nodes.mate_count() + p.nodes.mate_index(mate);
  return part(p.collected.buffer, p.served[i], p.request, piece, p.collected.slot(place, piece));
}

Range arrived(const Plan& p, int node, uint32_t piece) {
  return part(p.arrived.buffer, p.request.rank, p.request, piece,
              p.arrived.slot(p.nodes.node_index(node), piece));
}

std::vector<Range> node_sources(const Plan& p, uint32_t i, uint32_t piece) {
  std::vector<Range> sources;
  for (int rank : p.nodes.ranks_of(p.nodes.own()))
    sources.push_back(rank == p.request.rank ? part(p.caller.input, p.served[i], p.request, piece)
                                             : collected(p, i, rank, piece));
  return sources;
}

void collect(Plan* p, uint32_t i, uint32_t piece) {
  for (int mate : p->nodes.mates())
    p->builder.recv(mate, p->message(p->served[i], piece), collected(*p, i, mate, piece));
}

// The chunks of `node`'s ranks that others of the own node sum.
void deliver(Plan* p, int node, uint32_t piece) {
  const auto depth = p->request.depth ? p->request.depth : kNodeDepth;
  std::vector<OperationId> paced;
  if (piece >= depth) paced.push_back(p->reduced[piece - depth]);
  for (int chunk : p->nodes.ranks_of(node)) {
    const int server = p->server(p->nodes.own(), chunk);
    if (server == p->request.rank) continue;
    p->builder.send(server, p->message(chunk, piece),
                    part(p->caller.input, chunk, p->request, piece), paced);
  }
}

// The node's sum of another node's chunk, to whom it belongs.
void forward(Plan* p, uint32_t i, uint32_t piece) {
  const int chunk = p->served[i];
  Range sum = part(p->caller.input, chunk, p->request, piece);
  if (!p->alone()) {
    sum = part(p->sums.buffer, chunk, p->request, piece, p->sums.slot(i, piece));
    p->builder.add(kReduce, node_sources(*p, i, piece), {sum});
  }
  p->builder.send(chunk, p->message(chunk, piece), sum);
}

void add_piece(Plan* p, uint32_t piece) {
  const auto last = static_cast<uint32_t>(p->served.size()) - 1;
  for (int node : p->nodes.others())
    p->builder.recv(p->server(node, p->request.rank), p->message(p->request.rank, piece),
                    arrived(*p, node, piece));
  uint32_t i = 0;
  for (int node : p->nodes.others()) {
    const uint32_t first = i;
    for (; i < last && p->nodes.placement.node_of(p->served[i]) == node; i++) collect(p, i, piece);
    deliver(p, node, piece);
    for (uint32_t k = first; k < i; k++) forward(p, k, piece);
  }
  collect(p, last, piece);
  deliver(p, p->nodes.own(), piece);
  std::vector<Range> sources = node_sources(*p, last, piece);
  for (int node = 0; node < p->nodes.count(); node++)
    if (node != p->nodes.own()) sources.push_back(arrived(*p, node, piece));
  p->reduced.push_back(p->builder.add(
      kReduce, std::move(sources), {part(p->caller.output, p->request.rank, p->request, piece)}));
}

}  // namespace

Schedule hier_reduce_scatter(const Request& request) {
  Plan p = plan(request);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) add_piece(&p, piece);
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
