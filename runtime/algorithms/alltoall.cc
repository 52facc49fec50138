// All-to-all: part j of the input straight to rank j, pairs rotated so that no rank is everybody's
// target at once. Not in place.
//
// `direct` posts everything at once; `pairwise` goes through W-1 steps with one partner each way,
// a few steps in flight, so that no port sees all peers' messages at once.
#include "runtime/algorithms/parts.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::OperationId;

namespace {

void copy_own(Builder* builder, const CallerBuffers& caller, const Request& request) {
  const auto own = static_cast<uint32_t>(request.rank);
  const auto parts = static_cast<uint32_t>(request.world_size);
  builder->add(schedule::kCopy, {{caller.input, 0, own, parts, 0, 1}},
               {{caller.output, 0, own, parts, 0, 1}});
}

}  // namespace

Schedule direct_alltoall(const Request& request) {
  Builder builder(schedule_name("direct", request), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, request);
  for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
    for (int from : builder.recv_order())
      builder.recv(from, piece, part(caller.output, from, request, piece));
    for (int to : builder.send_order())
      builder.send(to, piece, part(caller.input, to, request, piece));
  }
  copy_own(&builder, caller, request);
  return builder.finish();
}

Schedule pairwise_alltoall(const Request& request) {
  Builder builder(schedule_name("pairwise", request), request.rank, request.world_size);
  const CallerBuffers caller = caller_buffers(&builder, request);
  const uint32_t depth = request.depth ? request.depth : kPairwiseDepth;
  const std::vector<int> to = builder.send_order();
  const std::vector<int> from = builder.recv_order();
  // By turn, which is a piece of a step: its messages.
  std::vector<OperationId> sent;
  std::vector<OperationId> received;
  for (size_t step = 0; step < to.size(); step++)
    for (uint32_t piece = 0; piece < pieces_of(request); piece++) {
      std::vector<OperationId> before;
      std::vector<OperationId> room;
      if (received.size() >= depth) {
        room = {received[received.size() - depth]};
        before = {sent[sent.size() - depth], room[0]};
      }
      received.push_back(
          builder.recv(from[step], piece, part(caller.output, from[step], request, piece), room));
      sent.push_back(
          builder.send(to[step], piece, part(caller.input, to[step], request, piece), before));
    }
  copy_own(&builder, caller, request);
  return builder.finish();
}

}  // namespace bitrail::algorithms
