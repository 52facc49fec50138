// Ring: everything goes to the next rank (r+1), W-1 steps a half, pieces pipelined through the
// steps.
//
//   reduce-scatter, step s: send the partial sum of chunk r-s-1, receive that of chunk r-s-2 and
//   add the own part; after W-1 steps rank r holds the whole sum of chunk r.
//   all-gather, step s: send chunk r-s, receive chunk r-s-1.
//
// Chunk j is summed in the order j+1, j+2, ..., j by one rank, so all ranks get the same bits.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::BufferId;
using schedule::Builder;
using schedule::Range;
using schedule::Role;

namespace {

// Partial sums alternate between two places: one is being sent while the other is received.
constexpr uint32_t kPlaces = 2;

struct Plan {
  const Request& request;
  Builder builder;
  CallerBuffers caller;

  int world() const { return request.world_size; }
  int chunk(int offset) const { return ((request.rank + offset) % world() + world()) % world(); }
  int next() const { return chunk(1); }
  int previous() const { return chunk(-1); }
  uint32_t message(int half, int step, uint32_t piece) const {
    return static_cast<uint32_t>(half * (world() - 1) + step) * pieces_of(request) + piece;
  }
};

Plan plan(const Request& request) {
  Plan p{request, Builder(schedule_name("ring", request), request.rank, request.world_size), {}};
  p.caller = caller_buffers(&p.builder, request);
  return p;
}

void copy_part(Plan* p) {
  const auto chunk = static_cast<uint32_t>(p->request.rank);
  const auto chunks = static_cast<uint32_t>(p->world());
  if (!p->request.in_place)
    p->builder.add(schedule::kCopy, {{p->caller.input, 0, chunk, chunks, 0, 1}},
                   {{p->caller.output, 0, chunk, chunks, 0, 1}});
}

void scatter(Plan* p) {
  const Request& request = p->request;
  const auto chunks = static_cast<uint32_t>(p->world());
  const BufferId partial = p->builder.buffer(
      {"partial", Role::scratch, schedule::kDataUnit, schedule::kElements, kPlaces, chunks, 1});
  const int last = p->world() - 2;
  for (int step = 0; step <= last; step++) {
    const auto place = static_cast<uint32_t>(step) % kPlaces;
    for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
      const Range arriving = part(partial, p->chunk(-step - 2), request, piece, place);
      p->builder.recv(p->previous(), p->message(0, step, piece), arriving);
      p->builder.send(p->next(), p->message(0, step, piece),
                      step == 0 ? part(p->caller.input, p->chunk(-1), request, piece)
                                : part(partial, p->chunk(-step - 1), request, piece,
                                       static_cast<uint32_t>(step - 1) % kPlaces));
      const Range sum =
          step == last ? part(p->caller.output, request.rank, request, piece) : arriving;
      p->builder.add(schedule::kReduce,
                     {arriving, part(p->caller.input, p->chunk(-step - 2), request, piece)}, {sum});
    }
  }
}

void gather(Plan* p, BufferId own, int half) {
  for (int step = 0; step < p->world() - 1; step++)
    for (uint32_t piece = 0; piece < pieces_of(p->request); piece++) {
      p->builder.send(p->next(), p->message(half, step, piece),
                      part(step == 0 ? own : p->caller.output, p->chunk(-step), p->request, piece));
      p->builder.recv(p->previous(), p->message(half, step, piece),
                      part(p->caller.output, p->chunk(-step - 1), p->request, piece));
    }
}

}  // namespace

Schedule ring_allreduce(const Request& request) {
  Plan p = plan(request);
  if (request.world_size == 1) {
    copy_part(&p);
  } else {
    scatter(&p);
    gather(&p, p.caller.output, 1);
  }
  return p.builder.finish();
}

Schedule ring_reduce_scatter(const Request& request) {
  Plan p = plan(request);
  if (request.world_size == 1) {
    copy_part(&p);
  } else {
    scatter(&p);
  }
  return p.builder.finish();
}

Schedule ring_allgather(const Request& request) {
  Plan p = plan(request);
  gather(&p, p.caller.input, 0);
  copy_part(&p);
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
