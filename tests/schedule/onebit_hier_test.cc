// The hierarchical 1-bit allreduce for all ranks at once: worlds, placements, counts, pieces, both
// kinds of scales; what the verifier must see when it is spoilt; bytes between nodes.
#include <gtest/gtest.h>

#include <set>

#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Request;
using schedule::Collective;
using schedule::Operation;
using schedule::OperationId;
using schedule::Schedule;
using topology::Placement;

constexpr const char* kNames[] = {"onebit_hier", "onebit_leader"};

const Algorithm& find(const char* name) {
  return *planner::find(Collective::onebit_allreduce, name);
}

Request request_for(const Placement& placement, uint32_t pieces, bool block = false,
                    bool in_place = false) {
  Request request =
      test::make_request(Collective::onebit_allreduce, placement.world_size(), pieces);
  request.placement = &placement;
  request.block_scale = block;
  request.in_place = in_place;
  return request;
}

// As the engine binds: whole chunks, or short ones where `count` does not divide.
schedule::Binding bind(uint64_t count) {
  schedule::Binding binding;
  binding.quantum = binding.piece_quantum = binding.group = 8;
  binding.counts = {count, 2};
  return binding;
}

void verify(const char* name, const Request& request, const std::vector<uint64_t>& counts) {
  const Algorithm& algorithm = find(name);
  ASSERT_TRUE(algorithm.applies(request)) << name;
  const std::vector<Schedule> ranks = test::build_world(algorithm, request);
  for (uint64_t count : counts) {
    const std::vector<std::string> problems =
        schedule::verify(ranks, bind(count), {Collective::onebit_allreduce, 0});
    ASSERT_TRUE(problems.empty()) << ranks[0].name << " on " << request.placement->nodes()
                                  << " nodes, count " << count << " depth " << request.depth
                                  << (request.block_scale ? " block" : "") << ": " << problems[0];
  }
}

std::vector<Placement> placements() {
  std::vector<Placement> list;
  for (const auto& [world, each] : {std::pair{4, 2}, {6, 2}, {6, 3}, {8, 2}, {8, 4}, {9, 3}})
    list.push_back(topology::place_blocks(world, each));
  for (const auto& [world, nodes] : {std::pair{4, 2}, {6, 3}, {8, 4}})
    list.push_back(topology::place_cyclic(world, nodes));
  // Uneven: fewer rails than ranks, at last one; interleaved.
  list.push_back(topology::place_blocks(7, 3));
  list.push_back(topology::place_cyclic(7, 3));
  list.push_back(topology::place_ranks({0, 1, 1, 0, 1, 0, 0}));
  list.push_back(topology::place_ranks({3, 3, 3, 9}));
  return list;
}

TEST(OnebitHier, KeepsItsPromise) {
  for (const Placement& placement : placements())
    for (const char* name : kNames)
      for (uint32_t pieces : {1U, 3U})
        for (uint32_t depth : {0U, 1U, 5U})
          for (bool block : {false, true}) {
            Request request = request_for(placement, pieces, block, /*in_place=*/depth == 1);
            request.depth = depth;
            const auto world = static_cast<uint64_t>(placement.world_size());
            verify(name, request, {0, 8 * world, 8 * world * 3 + 8, 40 * world});
          }
}

TEST(OnebitHier, KeepsItsPromiseInLargerWorlds) {
  for (const Placement& placement : {topology::place_blocks(16, 4), topology::place_cyclic(16, 4),
                                     topology::place_blocks(24, 8), topology::place_blocks(33, 8)})
    for (const char* name : kNames)
      for (bool block : {false, true})
        verify(name, request_for(placement, 2, block),
               {16 * static_cast<uint64_t>(placement.world_size())});
}

TEST(OnebitHier, AppliesWhereNodesHaveSeveralRanks) {
  const Placement one = topology::place_blocks(4, 4), apart = topology::place_blocks(4, 1),
                  both = topology::place_blocks(4, 2), other = topology::place_blocks(6, 2);
  for (const char* name : kNames) {
    const Algorithm& algorithm = find(name);
    EXPECT_FALSE(algorithm.applies(request_for(one, 1)));
    EXPECT_FALSE(algorithm.applies(request_for(apart, 1)));
    EXPECT_TRUE(algorithm.applies(request_for(both, 1)));
    Request request = request_for(both, 1);
    request.placement = nullptr;
    EXPECT_FALSE(algorithm.applies(request));
    request.placement = &other;
    EXPECT_FALSE(algorithm.applies(request));
  }
}

TEST(OnebitHier, TakesAsManyRailsAsTheSmallestNodeHasRanks) {
  const Placement uneven = topology::place_ranks({0, 0, 0, 1, 1});
  EXPECT_EQ(find("onebit_hier").rails(request_for(uneven, 1)), 2);
  EXPECT_EQ(find("onebit_leader").rails(request_for(uneven, 1)), 1);
  EXPECT_FALSE(find("onebit_direct").rails);
}

// All that an operation comes after.
std::vector<std::set<OperationId>> ancestors(const Schedule& rank) {
  std::vector<std::set<OperationId>> before(rank.operations.size());
  for (OperationId id = 0; id < rank.operations.size(); id++)
    for (OperationId earlier : rank.operations[id].after) {
      before[id].insert(earlier);
      before[id].insert(before[earlier].begin(), before[earlier].end());
    }
  return before;
}

// Nothing that a refused call must leave alone is written before the verdict, and by then all own
// values were read, so that a consumer may change them.
TEST(OnebitHier, WritesErrorsAndOutputAfterTheVerdictOnly) {
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  for (const char* name : kNames)
    for (bool block : {false, true})
      for (const Schedule& rank : test::build_world(find(name), request_for(placement, 3, block))) {
        const std::vector<std::set<OperationId>> before = ancestors(rank);
        OperationId verdict = 0;
        while (rank.operations[verdict].kind != &schedule::kVerdict) verdict++;
        for (OperationId id = 0; id < rank.operations.size(); id++) {
          const Operation& o = rank.operations[id];
          for (const schedule::Range& range : o.writes)
            if (rank.buffers[range.buffer].role != schedule::Role::scratch) {
              EXPECT_EQ(before[id].count(verdict), 1U) << schedule::describe(rank, id);
            }
          for (const schedule::Range& range : o.reads)
            if (rank.buffers[range.buffer].role == schedule::Role::input) {
              EXPECT_EQ(before[verdict].count(id), 1U) << schedule::describe(rank, id);
            }
          // What a refused call has posted is answered: the engine holds back all behind.
          if (o.kind == &schedule::kSign) {
            EXPECT_LT(id, verdict);
          }
        }
      }
}

// Errors live where values are coded and nowhere else: P/rails and P/chunks elements.
TEST(OnebitHier, KeepsErrorsOfItsShareOnly) {
  constexpr uint64_t kCount = 64 * 15;
  const Placement placement = topology::place_ranks({0, 0, 0, 1, 1});
  for (const Schedule& rank : test::build_world(find("onebit_hier"), request_for(placement, 2))) {
    uint64_t worker = 0, server = 0;
    for (const schedule::Buffer& buffer : rank.buffers) {
      if (buffer.role == schedule::Role::worker_error) worker += buffer_bytes(buffer, bind(kCount));
      if (buffer.role == schedule::Role::server_error) server += buffer_bytes(buffer, bind(kCount));
    }
    const bool codes = placement.local_of(rank.rank) < 2;
    EXPECT_EQ(worker, codes ? 4 * kCount / 2 : 0);
    EXPECT_EQ(server, codes ? 4 * kCount / 4 : 0);
  }
}

uint64_t bytes_between_nodes(const std::vector<Schedule>& ranks, const Placement& placement,
                             const schedule::Binding& binding, int node) {
  uint64_t bytes = 0;
  for (const Schedule& rank : ranks)
    for (const Operation& o : rank.operations)
      if (o.kind == &schedule::kSend && placement.node_of(rank.rank) == node &&
          placement.node_of(o.peer) != node)
        bytes += byte_bounds(rank, o.reads[0], binding).size();
  return bytes;
}

TEST(OnebitHier, HalvesTheBytesBetweenFourHostsOfTwo) {
  const Placement placement = topology::place_blocks(8, 2);
  for (const uint64_t count : {uint64_t{1} << 18, uint64_t{1} << 24}) {
    const schedule::Binding binding = bind(count);
    const auto flat = bytes_between_nodes(
        test::build_world(find("onebit_direct"), request_for(placement, 4)), placement, binding, 1);
    for (const char* name : kNames) {
      const auto hier = bytes_between_nodes(
          test::build_world(find(name), request_for(placement, 4)), placement, binding, 1);
      EXPECT_GE(static_cast<double>(flat), 1.9 * static_cast<double>(hier)) << name;
      // 2 (N-1)/N bits an element and scales.
      EXPECT_GE(hier, 2 * 3 * count / 32);
      EXPECT_LE(hier, 2 * 3 * count / 32 + 500) << name;
    }
  }
}

// Good schedules, spoilt in one place.
class SpoiltHier : public testing::TestWithParam<bool> {
 protected:
  Request request() const {
    Request two_slots = request_for(placement, 2, GetParam());
    two_slots.depth = 2;
    return two_slots;
  }
  SpoiltHier()
      : placement(topology::place_ranks({0, 0, 0, 1, 1})),
        ranks(test::build_world(find("onebit_hier"), request())) {
    EXPECT_EQ(test::first(problems()), "none");
  }
  std::vector<std::string> problems() const {
    return schedule::verify(ranks, bind(16 * 20), {Collective::onebit_allreduce, 0});
  }
  Operation& pick(size_t rank, const schedule::OperationKind& kind, size_t index = 0) {
    for (Operation& o : ranks[rank].operations)
      if (o.kind == &kind && index-- == 0) return o;
    ADD_FAILURE() << "no such operation";
    return ranks[rank].operations[0];
  }
  // Sends of results of other nodes to a rank of the own one.
  Operation& pick_handed_on(size_t rank) {
    const Schedule& s = ranks[rank];
    for (Operation& o : ranks[rank].operations)
      if (o.kind == &schedule::kSend && s.buffers[o.reads[0].buffer].name == "gather" &&
          placement.node_of(o.peer) == placement.node_of(s.rank))
        return o;
    ADD_FAILURE() << "nothing handed on";
    return ranks[rank].operations[0];
  }
  void expect_seen(const std::string& text) {
    const std::vector<std::string> found = problems();
    const bool seen = std::any_of(found.begin(), found.end(), [&](const std::string& p) {
      return p.find(text) != std::string::npos;
    });
    EXPECT_TRUE(seen) << "expected \"" << text << "\", got: " << test::first(found);
  }

  Placement placement;
  std::vector<Schedule> ranks;
};
INSTANTIATE_TEST_SUITE_P(, SpoiltHier, testing::Bool(),
                         [](const auto& one) { return one.param ? "block" : "segment"; });

TEST_P(SpoiltHier, ARankLeftOutOfTheSum) {
  pick(1, schedule::kNodeSum).reads.pop_back();
  expect_seen("instead of");
}

TEST_P(SpoiltHier, ARankTwiceInTheSum) {
  Operation& sum = pick(0, schedule::kNodeSum, 1);
  sum.reads.push_back(sum.reads[1]);
  expect_seen("2 x rank 1");
}

TEST_P(SpoiltHier, ANodeLeftOutOfTheAverage) {
  std::vector<schedule::Range>& reads = pick(3, schedule::kUnpackAverage).reads;
  reads.erase(reads.begin());
  expect_seen("instead of");
}

TEST_P(SpoiltHier, ValuesOfTheWrongRail) {
  Operation& load = pick(2, schedule::kLoad);
  load.reads[0].chunk = (load.reads[0].chunk + 2) % 4;
  expect_seen("instead of");
}

TEST_P(SpoiltHier, AResultForTheWrongChunk) {
  Operation& send = pick_handed_on(0);
  send.reads[0].slot = send.reads[0].slot == 0 ? 1 : 0;
  EXPECT_FALSE(problems().empty());
}

TEST_P(SpoiltHier, AResultNotHandedOn) {
  static const schedule::OperationKind kNothing = {"nothing", schedule::Meaning::none};
  Operation& send = pick_handed_on(4);
  send = Operation{};
  send.kind = &kNothing;
  expect_seen("has 0 sends and 1 recvs");
}

TEST_P(SpoiltHier, HandedOnBeforeItCame) {
  pick_handed_on(1).after.clear();
  expect_seen("in no order");
}

// Two slots a peer: the third piece may come when the first is summed.
TEST_P(SpoiltHier, ASlotReusedEarly) {
  bool spoilt = false;
  for (Operation& o : ranks[0].operations)
    if (o.kind == &schedule::kRecv && !o.after.empty() &&
        ranks[0].buffers[o.writes[0].buffer].name == "values_in") {
      o.after.clear();
      spoilt = true;
    }
  EXPECT_TRUE(spoilt);
  expect_seen("in no order");
}

}  // namespace
}  // namespace bitrail
