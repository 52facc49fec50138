// Recursive doubling allreduce: in step s every rank exchanges everything it has with the partner
// whose number differs in bit s. log2 W latencies and W-independent code: for small vectors.
//
// Worlds that are no power of two fold first: of the 2 (W - 2^m) lowest ranks each even one gives
// its vector to the next odd one, and gets the result back at the end.
//
// Both partners add the lower rank's block first, so all ranks evaluate the same tree and get the
// same bits.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::BufferId;
using schedule::Builder;
using schedule::kReduce;
using schedule::Range;
using schedule::Role;

namespace {

struct Plan {
  Builder builder;
  CallerBuffers caller;
  BufferId arrived = 0;  // a slot a step, so that all receives can be posted at once
  BufferId sums = 0;
  Folding folding;
};

constexpr uint32_t kFoldMessage = 0;
constexpr uint32_t kUnfoldMessage = 1;
constexpr uint32_t kStepMessage = 2;

}  // namespace

Schedule doubling_allreduce(const Request& request) {
  Request single = request;  // small vectors are not cut
  single.pieces = 1;
  const int rank = request.rank;
  const int world = request.world_size;
  Plan p{Builder(schedule_name("doubling", single), rank, world), {}, 0, 0, folding_of(world)};
  p.caller = caller_buffers(&p.builder, single);
  const Range input = all_of(p.caller.input);
  const Range output = all_of(p.caller.output);
  if (world == 1) {
    if (!request.in_place) p.builder.add(schedule::kCopy, {input}, {output});
    return p.builder.finish();
  }
  const bool folds = rank < 2 * p.folding.folded;
  if (folds && rank % 2 == 0) {
    p.builder.send(rank + 1, kFoldMessage, input);
    p.builder.recv(rank + 1, kUnfoldMessage, output);
    return p.builder.finish();
  }
  const auto slots = static_cast<uint32_t>(p.folding.steps + 1);
  p.arrived = p.builder.buffer(
      {"arrived", Role::scratch, schedule::kDataUnit, schedule::kElements, slots, 1, 1});
  p.sums = p.builder.buffer(
      {"sums", Role::scratch, schedule::kDataUnit, schedule::kElements, slots, 1, 1});
  Range mine = input;
  if (folds) {
    const Range other = all_of(p.arrived, slots - 1);
    p.builder.recv(rank - 1, kFoldMessage, other);
    mine = all_of(p.sums, slots - 1);
    p.builder.add(kReduce, {other, input}, {mine});
  }
  const int index = p.folding.index_of(rank);
  for (int step = 0; step < p.folding.steps; step++) {
    const int partner_index = index ^ (1 << step);
    const int partner = p.folding.rank_of(partner_index);
    const auto slot = static_cast<uint32_t>(step);
    const uint32_t message = kStepMessage + slot;
    const Range theirs = all_of(p.arrived, slot);
    p.builder.recv(partner, message, theirs);
    p.builder.send(partner, message, mine);
    const Range sum = step == p.folding.steps - 1 ? output : all_of(p.sums, slot);
    if (partner_index < index) {
      p.builder.add(kReduce, {theirs, mine}, {sum});
    } else {
      p.builder.add(kReduce, {mine, theirs}, {sum});
    }
    mine = sum;
  }
  if (folds) p.builder.send(rank - 1, kUnfoldMessage, output);
  return p.builder.finish();
}

}  // namespace bitrail::algorithms
