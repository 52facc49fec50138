// Recursive halving and doubling (Rabenseifner): in step s partners whose numbers differ in bit s
// give each other the half that the other one keeps; after log2 W steps each holds the sum of one
// chunk, and the steps back collect the others. 2 log2 W latencies with the bytes of a ring.
//
// The long first steps are between neighbours, which mostly are on one node. Worlds that are no
// power of two fold first, as in doubling.cc.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::BufferId;
using schedule::Builder;
using schedule::kReduce;
using schedule::Range;
using schedule::Role;

namespace {

constexpr uint32_t kFoldMessage = 0;
constexpr uint32_t kUnfoldMessage = 1;
constexpr uint32_t kStepMessage = 2;
// A step's data may arrive while the step before is summed.
constexpr uint32_t kPlaces = 2;

struct Span {
  uint32_t first, count;  // chunks
};

struct Plan {
  Builder builder;
  CallerBuffers caller = {};
  BufferId arrived = 0, sums = 0;
  Folding folding;
  Range range(BufferId buffer, Span span, uint32_t slot = 0) const {
    const auto chunks = static_cast<uint32_t>(folding.power);
    return {buffer, slot, span.first, chunks, 0, 1, span.count};
  }
};

// The halves of `span` that the rank of number `index` keeps and gives away in step `step`.
Span kept(Span span, int index, int step) {
  const uint32_t half = span.count / 2;
  return {(index >> step) & 1 ? span.first + half : span.first, half};
}

}  // namespace

Schedule halving_allreduce(const Request& request) {
  Request single = request;  // the halves are the pieces
  single.pieces = 1;
  const int rank = request.rank;
  Plan p{Builder(schedule_name("halving", single), rank, request.world_size)};
  p.folding = folding_of(request.world_size);
  p.caller = caller_buffers(&p.builder, single);
  const Range output = all_of(p.caller.output);
  if (request.world_size == 1) {
    if (!request.in_place) p.builder.add(schedule::kCopy, {all_of(p.caller.input)}, {output});
    return p.builder.finish();
  }
  const bool folds = rank < 2 * p.folding.folded;
  if (folds && rank % 2 == 0) {
    p.builder.send(rank + 1, kFoldMessage, all_of(p.caller.input));
    p.builder.recv(rank + 1, kUnfoldMessage, output);
    return p.builder.finish();
  }
  p.arrived = p.builder.buffer(
      {"arrived", Role::scratch, schedule::kDataUnit, schedule::kElements, kPlaces, 1, 1});
  p.sums =
      p.builder.buffer({"sums", Role::scratch, schedule::kDataUnit, schedule::kElements, 1, 1, 1});
  BufferId mine = p.caller.input;
  if (folds) {
    p.builder.recv(rank - 1, kFoldMessage, all_of(p.arrived, kPlaces - 1));
    p.builder.add(kReduce, {all_of(p.arrived, kPlaces - 1), all_of(mine)}, {all_of(p.sums)});
    mine = p.sums;
  }
  const int index = p.folding.index_of(rank);
  std::vector<Span> spans = {{0, static_cast<uint32_t>(p.folding.power)}};
  for (int step = 0; step < p.folding.steps; step++) {
    const int partner_index = index ^ (1 << step);
    const int partner = p.folding.rank_of(partner_index);
    const auto message = kStepMessage + static_cast<uint32_t>(step);
    const Span own = kept(spans.back(), index, step);
    const Range theirs = p.range(p.arrived, own, static_cast<uint32_t>(step) % kPlaces);
    p.builder.recv(partner, message, theirs);
    p.builder.send(partner, message, p.range(mine, kept(spans.back(), partner_index, step)));
    const bool last = step == p.folding.steps - 1;
    const Range sum = p.range(last ? p.caller.output : p.sums, own);
    p.builder.add(kReduce, {p.range(mine, own), theirs}, {sum});
    mine = p.sums;
    spans.push_back(own);
  }
  for (int back = 0; back < p.folding.steps; back++) {
    const int step = p.folding.steps - 1 - back;
    const int partner_index = index ^ (1 << step);
    const int partner = p.folding.rank_of(partner_index);
    const auto message = kStepMessage + static_cast<uint32_t>(p.folding.steps + back);
    const Span around = spans[static_cast<size_t>(step)];
    p.builder.recv(partner, message, p.range(p.caller.output, kept(around, partner_index, step)));
    p.builder.send(partner, message, p.range(p.caller.output, kept(around, index, step)));
  }
  if (folds) p.builder.send(rank - 1, kUnfoldMessage, output);
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
