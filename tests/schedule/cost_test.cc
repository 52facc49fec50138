// Cost formulas against the schedules that they are about: with one rate at 1 and the others at 0 a
// cost is a count that can be taken from the schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "runtime/algorithms/cost.h"
#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Rates;
using algorithms::Request;
using schedule::Collective;
using schedule::Operation;
using schedule::Schedule;
using topology::Placement;

constexpr double kUs = 1e-6;

struct Counts {
  double network = 0;  // bytes out of the busiest node
  double mates = 0;    // bytes from the busiest rank to its mates
  double sources = 0;  // bytes that the busiest rank sums
  double messages = 0;
};

double bytes_of(const Schedule& rank, const schedule::Range& range,
                const schedule::Binding& binding) {
  return static_cast<double>(byte_bounds(rank, range, binding).size());
}

Counts count(const std::vector<Schedule>& ranks, const Placement& placement,
             const schedule::Binding& binding) {
  Counts most;
  std::vector<double> leaving(static_cast<size_t>(placement.nodes()));
  for (const Schedule& rank : ranks) {
    Counts own;
    const int node = placement.node_of(rank.rank);
    for (const Operation& o : rank.operations) {
      if (o.peer >= 0) own.messages++;
      if (o.kind == &schedule::kReduce)
        for (const schedule::Range& range : o.reads) own.sources += bytes_of(rank, range, binding);
      if (o.kind != &schedule::kSend || o.reads.empty()) continue;
      const double bytes = bytes_of(rank, o.reads[0], binding);
      (placement.node_of(o.peer) == node ? own.mates : leaving[static_cast<size_t>(node)]) += bytes;
    }
    most.mates = std::max(most.mates, own.mates);
    most.sources = std::max(most.sources, own.sources);
    most.messages = std::max(most.messages, own.messages);
  }
  most.network = *std::max_element(leaving.begin(), leaving.end());
  return most;
}

Rates only_network() {
  Rates rates;
  rates.network.beta = 1;
  return rates;
}
Rates only_mates() {
  Rates rates;
  rates.memory = 1;
  return rates;
}
Rates only_sums(double cores) {
  Rates rates;
  rates.reduce = 1;
  rates.cores = cores;
  return rates;
}
Rates only_messages(double cores) {
  Rates rates;
  rates.message = 1;
  rates.cores = cores;
  return rates;
}

// Nodes of eight cores with 25 Gbit/s between them.
Rates usual() {
  Rates rates;
  rates.node = {1, 1e-4};
  rates.memory = 2e-4;
  rates.network = {20, 8 / 25e3};
  rates.message = 0.3;
  rates.reduce = 5e-5;
  rates.cores = 8;
  return rates;
}

struct World {
  const Algorithm& algorithm;
  Placement placement;
  Request request;
  Counts counts;

  World(Collective collective, const char* name, Placement where, uint32_t pieces)
      : algorithm(*planner::find(collective, name)), placement(std::move(where)) {
    const int world = placement.world_size();
    constexpr uint64_t kPart = 48;  // a multiple of all that it is cut into
    const bool parts = collective == Collective::reduce_scatter ||
                       collective == Collective::allgather || collective == Collective::alltoall;
    request = test::make_request(collective, world, pieces);
    request.placement = &placement;
    request.count = kPart * static_cast<uint64_t>(world);
    request.bytes = request.count * sizeof(float);
    counts = count(test::build_world(algorithm, request), placement,
                   test::bind(collective, world, parts ? kPart : request.count));
  }
  World(const World&) = delete;
  double cost(const Rates& rates) const { return algorithm.cost(request, rates); }
};

struct Named {
  Collective collective;
  const char* name;
};

TEST(Cost, CountsWhatTheSchedulesDo) {
  for (const Named& named :
       {Named{Collective::allreduce, "direct"}, Named{Collective::allreduce, "one_shot"},
        Named{Collective::allreduce, "ring"}, Named{Collective::allreduce, "hier"},
        Named{Collective::reduce_scatter, "direct"}, Named{Collective::reduce_scatter, "ring"},
        Named{Collective::reduce_scatter, "hier"}, Named{Collective::allgather, "direct"},
        Named{Collective::allgather, "ring"}, Named{Collective::allgather, "hier"},
        Named{Collective::alltoall, "direct"}, Named{Collective::alltoall, "pairwise"}})
    for (const Placement& placement : {topology::place_blocks(8, 2), topology::place_blocks(12, 4),
                                       topology::place_cyclic(8, 4), topology::place_cyclic(6, 2)})
      for (uint32_t pieces : {1U, 2U}) {
        const World world(named.collective, named.name, placement, pieces);
        const std::string what = std::string(collective_name(named.collective)) + " " + named.name +
                                 " on " + test::text_of(placement);
        EXPECT_NEAR(world.cost(only_network()), world.counts.network, kUs) << what;
        EXPECT_NEAR(world.cost(only_mates()), world.counts.mates, kUs) << what;
        EXPECT_NEAR(world.cost(only_sums(1e9)), world.counts.sources, kUs) << what;
        EXPECT_NEAR(world.cost(only_messages(1e9)), world.counts.messages, kUs) << what;
        // Ranks share the cores of their node.
        EXPECT_NEAR(world.cost(only_messages(1)), placement.most() * world.counts.messages, kUs)
            << what;
      }
}

// In steps each of which leads all ranks to another node, or none.
TEST(Cost, CountsWhatTheStepsDo) {
  for (const Named& named :
       {Named{Collective::allreduce, "doubling"}, Named{Collective::allreduce, "halving"}}) {
    const World world(named.collective, named.name, topology::place_blocks(8, 2), 1);
    EXPECT_NEAR(world.cost(only_network()), world.counts.network, kUs) << named.name;
    EXPECT_NEAR(world.cost(only_mates()), world.counts.mates, kUs) << named.name;
    EXPECT_NEAR(world.cost(only_sums(1e9)), world.counts.sources, kUs) << named.name;
    EXPECT_NEAR(world.cost(only_messages(1e9)), world.counts.messages, kUs) << named.name;
  }
  const World bruck(Collective::allgather, "bruck", topology::place_blocks(8, 1), 1);
  EXPECT_NEAR(bruck.cost(only_network()), bruck.counts.network, kUs);
  const World leader(Collective::allreduce, "leader", topology::place_blocks(12, 4), 2);
  EXPECT_NEAR(leader.cost(only_network()), leader.counts.network, kUs);
  EXPECT_NEAR(leader.cost(only_sums(1e9)), leader.counts.sources, kUs);
  EXPECT_NEAR(leader.cost(only_messages(1e9)), leader.counts.messages, kUs);
}

TEST(Cost, CountsLatencies) {
  Rates rates;
  rates.node.alpha = 1;
  rates.network.alpha = 100;
  const auto alphas = [&](Collective collective, const char* name, const Placement& placement) {
    return World(collective, name, placement, 1).cost(rates);
  };
  const Placement blocks = topology::place_blocks(8, 2);
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "one_shot", blocks), 100);
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "direct", blocks), 200);
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "doubling", blocks), 1 + 2 * 100);
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "halving", blocks), 2 * (1 + 2 * 100));
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "ring", blocks), 2 * 7 / 8.0 * 4 * (100 + 1));
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "hier", blocks), 2 * (100 + 1));
  // The deepest rank: the fourth node's second.
  EXPECT_DOUBLE_EQ(alphas(Collective::allreduce, "tree", blocks), 2 * (100 + 100 + 1));
  EXPECT_DOUBLE_EQ(alphas(Collective::allgather, "bruck", blocks), 300);
  EXPECT_DOUBLE_EQ(alphas(Collective::broadcast, "hier_tree", blocks), 100 + 100 + 1);
  EXPECT_DOUBLE_EQ(alphas(Collective::barrier, "dissemination", blocks), 300);
  EXPECT_DOUBLE_EQ(alphas(Collective::barrier, "hier", blocks), 2 + 200);
}

TEST(Cost, OfEveryExactAlgorithmIsTheSameOnAllRanksAndGrows) {
  const Rates rates = usual();
  for (int c = 0; c < schedule::kCollectives; c++) {
    const auto collective = static_cast<Collective>(c);
    if (test::is_onebit(collective)) continue;
    for (const Algorithm* algorithm : planner::algorithms_of(collective))
      for (int world : {1, 2, 5, 8, 33})
        for (const Placement& placement : test::placements_of(world)) {
          ASSERT_TRUE(algorithm->cost) << algorithm->name;
          Request request = test::make_request(collective, world, 2);
          request.placement = &placement;
          request.root = world - 1;
          double before = 0;
          for (uint64_t bytes = 8; bytes <= 8U << 20; bytes *= 64) {
            request.bytes = bytes;
            request.count = bytes / 4;
            request.rank = 0;
            const double cost = algorithm->cost(request, rates);
            request.rank = world - 1;
            EXPECT_EQ(cost, algorithm->cost(request, rates)) << algorithm->name;
            ASSERT_TRUE(std::isfinite(cost)) << algorithm->name;
            EXPECT_GE(cost, before) << algorithm->name << " " << test::text_of(placement);
            if (world > 1) {
              EXPECT_GT(cost, 0) << algorithm->name;
            }
            before = cost;
          }
          request.placement = nullptr;  // not known: every rank a node of its own
          EXPECT_TRUE(std::isfinite(algorithm->cost(request, rates))) << algorithm->name;
        }
  }
}

TEST(Cost, PortsShareANodesBytes) {
  Rates rates = only_network();
  rates.ports = 2;
  const World hier(Collective::allreduce, "hier", topology::place_blocks(8, 4), 1);
  EXPECT_NEAR(hier.cost(rates), hier.counts.network / 2, kUs);
  // One rank of each node drives one port.
  const World leader(Collective::allreduce, "leader", topology::place_blocks(8, 4), 1);
  EXPECT_NEAR(leader.cost(rates), leader.counts.network, kUs);
}

std::string cheapest(uint64_t bytes, const Placement& placement, const Rates& rates) {
  std::string best;
  double least = 0;
  for (const Algorithm* algorithm : planner::algorithms_of(Collective::allreduce)) {
    Request request = test::make_request(Collective::allreduce, placement.world_size(), 4);
    request.placement = &placement;
    request.bytes = bytes;
    if (!algorithm->applies(request)) continue;
    const double cost = algorithm->cost(request, rates);
    if (best.empty() || cost < least) {
      best = algorithm->name;
      least = cost;
    }
  }
  return best;
}

TEST(Cost, PrefersWhatShould) {
  const Placement blocks = topology::place_blocks(16, 8);
  EXPECT_EQ(cheapest(64U << 20, blocks, usual()), "hier");
  EXPECT_NE(cheapest(64U << 20, topology::place_blocks(2, 1), usual()), "one_shot");
  EXPECT_NE(cheapest(8, topology::place_blocks(64, 1), usual()), "ring");
}

TEST(Overlap, HidesAllButTheLongest) {
  EXPECT_DOUBLE_EQ(algorithms::overlap(1, {3, 1, 2}), 6);
  EXPECT_DOUBLE_EQ(algorithms::overlap(3, {3, 1, 2}), 4);
  EXPECT_DOUBLE_EQ(algorithms::overlap(0, {1, 1}), 2);
}

}  // namespace
}  // namespace bitrail
