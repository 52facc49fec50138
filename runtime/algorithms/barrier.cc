// Dissemination barrier: in round k a rank signals r + 2^k and waits for r - 2^k; a signal says
// that all who signalled its sender before have arrived. ceil(log2 W) rounds, messages of 0 bytes.
//
// Hierarchical: the ranks of a node signal its first one, those go through the rounds, and signal
// their nodes.
#include <numeric>

#include "runtime/algorithms/nodes.h"

namespace bitrail::algorithms {

using schedule::Builder;
using schedule::OperationId;

namespace {

// The rounds among `ranks`, of which the own one is number `index`. `heard` grows by what is heard.
void disseminate(Builder* builder, const std::vector<int>& ranks, size_t index,
                 std::vector<OperationId>* heard) {
  const size_t count = ranks.size();
  uint32_t round = 0;
  for (size_t distance = 1; distance < count; distance *= 2, round++) {
    builder->send_signal(ranks[(index + distance) % count], round, *heard);
    heard->push_back(builder->recv_signal(ranks[(index + count - distance) % count], round));
  }
}

}  // namespace

Schedule dissemination_barrier(const Request& request) {
  Builder builder(schedule_name("dissemination", request), request.rank, request.world_size);
  std::vector<int> all(static_cast<size_t>(request.world_size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<OperationId> heard;
  disseminate(&builder, all, static_cast<size_t>(request.rank), &heard);
  return builder.finish();
}

Schedule hier_barrier(const Request& request) {
  Builder builder(schedule_name("hier", request), request.rank, request.world_size);
  const Nodes nodes = nodes_of(request);
  const int leader = nodes.server(nodes.own(), 0);
  std::vector<OperationId> heard;
  if (request.rank != leader) {
    builder.send_signal(leader, 0);
    builder.recv_signal(leader, 0);
    return builder.finish();
  }
  for (int mate : nodes.mates()) heard.push_back(builder.recv_signal(mate, 0));
  std::vector<int> leaders;
  leaders.reserve(static_cast<size_t>(nodes.count()));
  for (int node = 0; node < nodes.count(); node++) leaders.push_back(nodes.server(node, 0));
  disseminate(&builder, leaders, static_cast<size_t>(nodes.own()), &heard);
  for (int mate : nodes.mates()) builder.send_signal(mate, 0, heard);
  return builder.finish();
}

}  // namespace bitrail::algorithms
