// What the 1-bit cost formulas count, against the schedules themselves; and what they choose.
#include <gtest/gtest.h>

#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Rates;
using algorithms::Request;
using schedule::Collective;
using topology::Placement;

const Algorithm& find(const char* name, Collective collective = Collective::onebit_allreduce) {
  return *planner::find(collective, name);
}

constexpr Collective kCollectives[] = {
    Collective::onebit_allreduce, Collective::onebit_reduce_scatter, Collective::onebit_allgather};

Request request_for(Collective collective, const Placement& placement, uint64_t count,
                    uint32_t pieces, bool block) {
  Request request = test::make_request(collective, placement.world_size(), pieces);
  request.placement = &placement;
  request.count = count;
  request.bytes = 4 * count;
  request.block_scale = block;
  return request;
}

// Of the busiest: messages of a rank, bytes out of a node.
struct Counted {
  double messages = 0, network = 0;
};

Counted count(const Algorithm& algorithm, const Request& request) {
  schedule::Binding binding;
  binding.quantum = binding.piece_quantum = binding.group = 1024;
  binding.counts = {request.count, request.block_scale ? 1U : 2U};
  Counted counted;
  std::vector<double> leaving(static_cast<size_t>(request.placement->nodes()));
  for (const schedule::Schedule& rank : test::build_world(algorithm, request)) {
    double messages = 0;
    for (const schedule::Operation& o : rank.operations) {
      const bool sends = o.kind == &schedule::kSend;
      if (!sends && o.kind != &schedule::kRecv) continue;
      messages++;
      const int node = request.placement->node_of(rank.rank);
      if (sends && request.placement->node_of(o.peer) != node)
        leaving[static_cast<size_t>(node)] +=
            static_cast<double>(byte_bounds(rank, o.reads[0], binding).size());
    }
    counted.messages = std::max(counted.messages, messages);
  }
  counted.network = *std::max_element(leaving.begin(), leaving.end());
  return counted;
}

TEST(CostOnebit, CountsWhatTheSchedulesDo) {
  Rates messages, network;
  messages.message = 1;
  messages.cores = 64;
  network.network.beta = 1;
  for (const Placement& placement :
       {topology::place_blocks(8, 2), topology::place_blocks(8, 4), topology::place_cyclic(9, 3),
        topology::place_ranks({0, 0, 0, 1, 1}), topology::place_ranks({0, 0, 0, 1})})
    for (const bool block : {false, true})
      for (const Collective collective : kCollectives)
        for (const Algorithm* algorithm : planner::algorithms_of(collective)) {
          const Request request = request_for(
              collective, placement,
              uint64_t{4096} * static_cast<uint64_t>(placement.world_size()) * 60, 3, block);
          ASSERT_TRUE(algorithm->cost) << algorithm->name;
          if (!algorithm->applies(request)) continue;
          const Counted counted = count(*algorithm, request);
          EXPECT_EQ(algorithm->cost(request, messages), counted.messages)
              << algorithm->name << " " << collective_name(collective) << (block ? " block" : "");
          // Scales inside the records are left out: 4 bytes a block.
          const double predicted = algorithm->cost(request, network);
          EXPECT_NEAR(predicted, counted.network, (block ? 0.05 : 0.001) * counted.network)
              << algorithm->name << " " << collective_name(collective) << (block ? " block" : "");
        }
}

// Two ports halve what rails share, and one leader uses one.
TEST(CostOnebit, RailsUseTheirPorts) {
  const Placement placement = topology::place_blocks(8, 2);
  const Request request =
      request_for(Collective::onebit_allreduce, placement, uint64_t{1} << 20, 1, false);
  Rates one, two;
  one.network.beta = two.network.beta = 1;
  two.ports = 2;
  for (const char* name : {"onebit_direct", "onebit_hier"})
    EXPECT_DOUBLE_EQ(find(name).cost(request, two), find(name).cost(request, one) / 2) << name;
  EXPECT_EQ(find("onebit_leader").cost(request, two), find("onebit_leader").cost(request, one));
}

Rates cluster(double mbps) {
  Rates rates;
  rates.node = {1, 0.0002};
  rates.memory = 0.0003;
  rates.network = {50, 8 / mbps};
  rates.message = 1;
  rates.reduce = 0.0001;
  rates.pack = 0.0008;
  rates.unpack = 0.0002;
  rates.cores = 8;
  return rates;
}

TEST(CostOnebit, PrefersRailsOnSlowLinksAndTheFlatOneInsideANode) {
  const Placement placement = topology::place_blocks(8, 2);
  for (const uint64_t count : {uint64_t{1} << 18, uint64_t{1} << 22, uint64_t{1} << 26}) {
    const Request request = request_for(Collective::onebit_allreduce, placement, count, 4, false);
    for (const double mbps : {100.0, 1000.0})
      EXPECT_LT(find("onebit_hier").cost(request, cluster(mbps)),
                find("onebit_direct").cost(request, cluster(mbps)))
          << count << " at " << mbps;
    // A network as fast as memory: sums inside the node cost more than bits save.
    Rates fast = cluster(1000);
    fast.network = fast.node;
    EXPECT_GT(find("onebit_hier").cost(request, fast), find("onebit_direct").cost(request, fast));
  }
}

TEST(CostOnebit, IsTheSameOnAllRanks) {
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  for (const Algorithm* algorithm : planner::algorithms_of(Collective::onebit_allreduce)) {
    Request request = request_for(Collective::onebit_allreduce, placement, 1 << 20, 2, false);
    const double first = algorithm->cost(request, cluster(1000));
    EXPECT_GT(first, 0);
    for (request.rank = 1; request.rank < 5; request.rank++)
      EXPECT_EQ(algorithm->cost(request, cluster(1000)), first);
  }
}

TEST(CostOnebit, TakesRanksWithoutPlacementForNodes) {
  Request alone = test::make_request(Collective::onebit_allreduce, 4, 1);
  alone.count = 1 << 20;
  const Placement apart = topology::place_blocks(4, 1);
  Request placed = alone;
  placed.placement = &apart;
  EXPECT_EQ(find("onebit_direct").cost(alone, cluster(1000)),
            find("onebit_direct").cost(placed, cluster(1000)));
  alone.world_size = 1;
  EXPECT_EQ(find("onebit_direct").cost(alone, cluster(1000)), 0);
}

}  // namespace
}  // namespace bitrail
