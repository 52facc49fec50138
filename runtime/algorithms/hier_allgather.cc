// Hierarchical all-gather: a rank's chunk goes once to every other node, to the rank in its own
// place there, which hands it to its node; inside the node everybody to everybody.
//
// Each node takes in the chunks of the other nodes' ranks once: (W - M)/W of the whole.
#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::Range;

namespace {

struct Plan {
  const Request& request;
  Nodes nodes;
  Builder builder;
  CallerBuffers caller = {};

  int server(int node, int chunk) const {
    return nodes.server(node, nodes.placement.local_of(chunk));
  }
  uint32_t message(int chunk, uint32_t piece) const {
    return static_cast<uint32_t>(chunk) * pieces_of(request) + piece;
  }
};

void give_out(Plan* p, int chunk, uint32_t piece, const Range& range) {
  for (int mate : p->nodes.mates()) p->builder.send(mate, p->message(chunk, piece), range);
}

void receive(Plan* p, int from, int chunk, uint32_t piece) {
  p->builder.recv(from, p->message(chunk, piece), part(p->caller.output, chunk, p->request, piece));
}

// The chunks of another node's ranks: from their owner here, or from whom it came to.
void take_in(Plan* p, int node, uint32_t piece) {
  for (int chunk : p->nodes.ranks_of(node)) {
    const int server = p->server(p->nodes.own(), chunk);
    const bool here = server == p->request.rank;
    receive(p, here ? chunk : server, chunk, piece);
    if (here) give_out(p, chunk, piece, part(p->caller.output, chunk, p->request, piece));
  }
}

}  // namespace

Schedule hier_allgather(const Request& request) {
  Plan p{request, nodes_of(request),
         Builder(schedule_name("hier", request), request.rank, request.world_size)};
  p.caller = caller_buffers(&p.builder, request);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    const Range own = part(p.caller.input, request.rank, request, piece);
    for (int node : p.nodes.others())
      p.builder.send(p.server(node, request.rank), p.message(request.rank, piece), own);
    give_out(&p, request.rank, piece, own);
    for (int mate : p.nodes.mates()) receive(&p, mate, mate, piece);
    for (int node : p.nodes.others()) take_in(&p, node, piece);
  }
  if (!request.in_place) {
    const auto chunk = static_cast<uint32_t>(request.rank);
    const auto chunks = static_cast<uint32_t>(request.world_size);
    p.builder.add(schedule::kCopy, {{p.caller.input, 0, chunk, chunks, 0, 1}},
                  {{p.caller.output, 0, chunk, chunks, 0, 1}});
  }
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
