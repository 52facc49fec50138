// Algorithms that look at the placement: verified over placements, spoilt on purpose, and their
// bytes between nodes counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/algorithms/nodes.h"
#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Request;
using schedule::Collective;
using schedule::Operation;
using schedule::Schedule;
using topology::Placement;

struct Placed {
  Collective collective;
  const char* name;
};

const Placed kPlaced[] = {
    {Collective::allreduce, "hier"}, {Collective::allreduce, "leader"},
    {Collective::allreduce, "tree"}, {Collective::reduce_scatter, "hier"},
    {Collective::allgather, "hier"}, {Collective::broadcast, "hier_tree"},
    {Collective::barrier, "hier"},
};

class Hierarchical : public testing::TestWithParam<Placed> {
 protected:
  const Algorithm& algorithm() const {
    return *planner::find(GetParam().collective, GetParam().name);
  }
  void verify_at(const Request& request, const std::vector<uint64_t>& counts,
                 uint64_t quantum = 1) const {
    if (!algorithm().applies(request)) return;
    const std::vector<Schedule> ranks = test::build_world(algorithm(), request);
    for (uint64_t count : counts) {
      const std::vector<std::string> problems = schedule::verify(
          ranks, test::bind(request.collective, request.world_size, count, quantum),
          {request.collective, request.root});
      ASSERT_TRUE(problems.empty())
          << ranks[0].name << " count " << count << " quantum " << quantum << " depth "
          << request.depth << " root " << request.root << " nodes "
          << test::text_of(*request.placement) << ": " << problems[0];
    }
  }
};

TEST_P(Hierarchical, KeepTheirPromiseInSmallWorlds) {
  for (int world = 2; world <= 9; world++)
    for (const Placement& placement : test::placements_of(world))
      for (uint32_t pieces : {1U, 3U})
        for (uint32_t depth : {0U, 1U}) {
          if (depth && pieces == 1) continue;
          for (bool in_place : {false, true}) {
            Request request = test::make_request(GetParam().collective, world, pieces);
            request.placement = &placement;
            request.depth = depth;
            request.in_place = in_place;
            request.root = world / 2;
            const auto w = static_cast<uint64_t>(world);
            // All counts out of place; the others change what may overlap, not what is cut.
            const bool all = depth == 0 && !in_place;
            verify_at(request, all ? std::vector<uint64_t>{0, 1, w - 1, w, w + 1, 3 * w + 2}
                                   : std::vector<uint64_t>{w + 1});
            if (all && GetParam().collective == Collective::allreduce)
              verify_at(request, {7 * w + 3}, 4);
          }
        }
}

TEST_P(Hierarchical, KeepTheirPromiseInLargerWorlds) {
  for (int world : {16, 33})
    for (const Placement& placement : test::placements_of(world)) {
      Request request = test::make_request(GetParam().collective, world, world == 16 ? 3 : 1);
      request.placement = &placement;
      request.depth = 2;
      request.in_place = placement.even();
      request.root = world - 1;
      verify_at(request, {static_cast<uint64_t>(world) + 1});
    }
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, Hierarchical, testing::ValuesIn(kPlaced),
                         [](const testing::TestParamInfo<Placed>& test) {
                           return std::string(collective_name(test.param.collective)) + "_" +
                                  test.param.name;
                         });

TEST(HierarchicalApplies, OnlyWhereThereIsAHierarchy) {
  const Placement one = topology::place_blocks(4, 4);
  const Placement apart = topology::place_blocks(4, 1);
  const Placement two = topology::place_blocks(4, 2);
  const Placement larger = topology::place_blocks(6, 2);
  for (const Placed& placed : kPlaced) {
    if (std::string(placed.name) == "tree") continue;
    const Algorithm& algorithm = *planner::find(placed.collective, placed.name);
    Request request = test::make_request(placed.collective, 4, 1);
    EXPECT_FALSE(algorithm.applies(request)) << "without placement";
    for (const Placement* placement : {&one, &apart, &larger}) {
      request.placement = placement;
      EXPECT_FALSE(algorithm.applies(request)) << test::text_of(*placement);
    }
    request.placement = &two;
    EXPECT_TRUE(algorithm.applies(request));
    request.deterministic = true;
    const bool sums = placed.collective == Collective::allreduce ||
                      placed.collective == Collective::reduce_scatter;
    EXPECT_EQ(algorithm.applies(request), !sums) << "not in rank order";
  }
}

TEST(Rails, LeaveTheBusiestRankTheLeast) {
  const auto rails = [](const std::vector<int>& sizes) {
    std::vector<int> labels;
    for (size_t node = 0; node < sizes.size(); node++)
      labels.insert(labels.end(), static_cast<size_t>(sizes[node]), static_cast<int>(node));
    return algorithms::rails_of(topology::place_ranks(labels));
  };
  EXPECT_EQ(rails({4, 4}), 4);
  EXPECT_EQ(rails({4, 5}), 4);  // five: a rank of the smaller node would serve 2/5
  EXPECT_EQ(rails({2, 4}), 4);  // half the vector either way, and four ranks share the other node
  EXPECT_EQ(rails({1, 5}), 5);
  EXPECT_EQ(rails({3, 1, 2}), 3);
}

// Bytes that each node sends to other nodes, by node.
std::vector<uint64_t> sent_between(const std::vector<Schedule>& ranks, const Placement& placement,
                                   const schedule::Binding& binding) {
  std::vector<uint64_t> bytes(static_cast<size_t>(placement.nodes()));
  for (const Schedule& rank : ranks)
    for (const Operation& o : rank.operations)
      if (o.kind == &schedule::kSend && !o.reads.empty() &&
          placement.node_of(o.peer) != placement.node_of(rank.rank))
        bytes[static_cast<size_t>(placement.node_of(rank.rank))] +=
            byte_bounds(rank, o.reads[0], binding).size();
  return bytes;
}

std::vector<uint64_t> sent_between(Collective collective, const char* name,
                                   const Placement& placement, uint64_t count, uint32_t pieces) {
  Request request = test::make_request(collective, placement.world_size(), pieces);
  request.placement = &placement;
  return sent_between(test::build_world(*planner::find(collective, name), request), placement,
                      test::bind(collective, placement.world_size(), count));
}

TEST(BytesBetweenNodes, AllreduceSendsTwiceTheShareOfTheOtherNodes) {
  constexpr uint64_t kCount = 48 * 48;
  for (const Placement& placement :
       {topology::place_blocks(8, 2), topology::place_blocks(12, 4), topology::place_cyclic(8, 4),
        topology::place_ranks({0, 0, 0, 1, 2, 2})})
    for (const char* name : {"hier", "leader"})
      for (uint32_t pieces : {1U, 2U}) {
        const auto nodes = static_cast<uint64_t>(placement.nodes());
        for (uint64_t bytes : sent_between(Collective::allreduce, name, placement, kCount, pieces))
          EXPECT_EQ(bytes, 2 * (nodes - 1) * kCount * sizeof(float) / nodes)
              << name << " " << test::text_of(placement);
      }
}

TEST(BytesBetweenNodes, PartsCrossOnce) {
  const Placement placement = topology::place_blocks(8, 2);
  constexpr uint64_t kPart = 12;
  for (uint64_t bytes : sent_between(Collective::reduce_scatter, "hier", placement, kPart, 3))
    EXPECT_EQ(bytes, 6 * kPart * sizeof(float));
  for (uint64_t bytes : sent_between(Collective::allgather, "hier", placement, kPart, 3))
    EXPECT_EQ(bytes, 2 * 3 * kPart * sizeof(float));
}

// Four nodes of two ranks: a ring in the nodes' order sends 2 (W-1)/W of the vector out of every
// node, which is 7/6 of 2 (N-1)/N; one in which neighbours are never on one node twice that.
TEST(BytesBetweenNodes, RingSendsMore) {
  constexpr uint64_t kCount = 8 * 8 * 12;
  const Placement blocks = topology::place_blocks(8, 2);
  const Placement cyclic = topology::place_cyclic(8, 4);
  const uint64_t hier = sent_between(Collective::allreduce, "hier", blocks, kCount, 1)[0];
  const uint64_t in_order = sent_between(Collective::allreduce, "ring", blocks, kCount, 1)[0];
  const uint64_t mixed = sent_between(Collective::allreduce, "ring", cyclic, kCount, 1)[0];
  EXPECT_EQ(6 * in_order, 7 * hier);
  EXPECT_EQ(mixed, 2 * in_order);
  EXPECT_EQ(sent_between(Collective::allreduce, "hier", cyclic, kCount, 1)[0], hier);
}

// The manual's table, in vectors out of the busiest of four nodes of two ranks.
TEST(BytesBetweenNodes, AreWhatTheManualSays) {
  constexpr uint64_t kCount = 8 * 8 * 12;
  const Placement placement = topology::place_blocks(8, 2);
  for (const auto& [name, vectors] : std::vector<std::pair<const char*, double>>{{"one_shot", 12},
                                                                                 {"doubling", 4},
                                                                                 {"direct", 3},
                                                                                 {"ring", 1.75},
                                                                                 {"halving", 1.5},
                                                                                 {"tree", 2},
                                                                                 {"hier", 1.5},
                                                                                 {"leader", 1.5}}) {
    const std::vector<uint64_t> bytes =
        sent_between(Collective::allreduce, name, placement, kCount, 1);
    EXPECT_DOUBLE_EQ(static_cast<double>(*std::max_element(bytes.begin(), bytes.end())),
                     vectors * kCount * sizeof(float))
        << name;
  }
}

TEST(BytesBetweenNodes, TreesCrossOnceForEachNode) {
  const Placement placement = topology::place_cyclic(9, 3);
  const auto total = [&](Collective collective, const char* name) {
    uint64_t sum = 0;
    for (uint64_t bytes : sent_between(collective, name, placement, 90, 2)) sum += bytes;
    return sum;
  };
  EXPECT_EQ(total(Collective::broadcast, "hier_tree"), 2U * 90 * sizeof(float));
  EXPECT_EQ(total(Collective::allreduce, "tree"), 2U * 2 * 90 * sizeof(float));
}

uint64_t scratch_bytes(const Schedule& rank, const schedule::Binding& binding) {
  uint64_t bytes = 0;
  for (const schedule::Buffer& buffer : rank.buffers)
    if (buffer.role == schedule::Role::scratch) bytes += schedule::buffer_bytes(buffer, binding);
  return bytes;
}

TEST(HierarchicalScratch, StaysAsSmallAsItsDepth) {
  const Placement placement = topology::place_blocks(8, 4);
  constexpr uint64_t kPieceElements = 1024;
  for (const Placed& placed :
       {Placed{Collective::allreduce, "hier"}, Placed{Collective::allreduce, "leader"},
        Placed{Collective::reduce_scatter, "hier"}}) {
    const bool parts = placed.collective == Collective::reduce_scatter;
    Request request = test::make_request(placed.collective, 8, 32);
    request.placement = &placement;
    request.depth = 2;
    uint64_t most = 0;
    for (const Schedule& rank :
         test::build_world(*planner::find(placed.collective, placed.name), request))
      most = std::max(most, scratch_bytes(rank, test::bind(placed.collective, 8,
                                                           (parts ? 1 : 8) * 32 * kPieceElements)));
    // A rail's share is a piece of each of the 4 ranks for each of 2 nodes, or of all rails' for
    // the leader; with the sums and what arrives from the other node less than twice that.
    const uint64_t rails = std::string(placed.name) == "leader" ? 4 : 1;
    EXPECT_LE(most, rails * 2 * (4 * 2) * 2 * kPieceElements * sizeof(float)) << placed.name;
  }
}

// Good schedules, spoilt in one place.
class SpoiltHierarchy : public testing::Test {
 protected:
  Placement placement = topology::place_blocks(6, 2);
  std::vector<Schedule> ranks;
  schedule::Binding binding = test::bind(Collective::allreduce, 6, 6 * 16);

  void SetUp() override {
    Request request = test::make_request(Collective::allreduce, 6, 2);
    request.placement = &placement;
    ranks = test::build_world(*planner::find(Collective::allreduce, "hier"), request);
    ASSERT_TRUE(problems().empty()) << problems()[0];
  }
  std::vector<std::string> problems() const {
    return schedule::verify(ranks, binding, {Collective::allreduce, 0});
  }
  bool reports(const std::string& text) const {
    const std::vector<std::string> all = problems();
    return std::any_of(all.begin(), all.end(), [&](const std::string& problem) {
      return problem.find(text) != std::string::npos;
    });
  }
  bool crosses(const Schedule& rank, const Operation& o) const {
    return o.peer >= 0 && placement.node_of(o.peer) != placement.node_of(rank.rank);
  }
};

TEST_F(SpoiltHierarchy, EverySendCounts) {
  const std::vector<Schedule> good = ranks;
  static const schedule::OperationKind nothing = {"nothing", schedule::Meaning::none};
  size_t sends = 0;
  for (size_t i = 0; i < good[2].operations.size(); i++) {
    if (good[2].operations[i].kind != &schedule::kSend) continue;
    ranks = good;
    ranks[2].operations[i] = Operation{};
    ranks[2].operations[i].kind = &nothing;
    EXPECT_TRUE(reports("has 0 sends and 1 recvs"));
    EXPECT_TRUE(reports("never completes"));
    sends++;
  }
  // Scatter 6 pieces, 2 rounds of 2 sums and 2 results to other nodes, gather 6 pieces.
  EXPECT_EQ(sends, 6U + 4 + 4 + 6);
}

// One rank takes the other rail: messages go to the mate of the one who waits for them.
TEST_F(SpoiltHierarchy, SwappedRail) {
  for (Operation& o : ranks[0].operations)
    if (crosses(ranks[0], o)) o.peer ^= 1;
  EXPECT_TRUE(reports("has 1 sends and 0 recvs"));
  EXPECT_TRUE(reports("has 0 sends and 1 recvs"));
}

// Two messages of one rail change places: all arrive, with the wrong node's sum.
TEST_F(SpoiltHierarchy, SwappedSums) {
  std::vector<Operation*> sums;
  for (Operation& o : ranks[0].operations)
    if (o.kind == &schedule::kSend && crosses(ranks[0], o) &&
        ranks[0].buffers[o.reads[0].buffer].role == schedule::Role::scratch)
      sums.push_back(&o);
  ASSERT_GE(sums.size(), 2U);
  std::swap(sums[0]->reads, sums[1]->reads);
  std::swap(sums[0]->after, sums[1]->after);
  EXPECT_FALSE(problems().empty());
}

TEST_F(SpoiltHierarchy, MateForgotten) {
  for (Operation& o : ranks[3].operations)
    if (o.kind == &schedule::kReduce) {
      o.reads.pop_back();
      break;
    }
  EXPECT_TRUE(reports("instead of"));
}

TEST_F(SpoiltHierarchy, MateCountedTwice) {
  for (Operation& o : ranks[3].operations)
    if (o.kind == &schedule::kReduce) {
      o.reads.push_back(o.reads.front());
      break;
    }
  EXPECT_TRUE(reports("2 x rank"));
}

}  // namespace
}  // namespace bitrail
