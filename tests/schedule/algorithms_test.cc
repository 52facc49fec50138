// Every built-in algorithm, verified for all ranks at once over world sizes, counts, pieces,
// depths, in place and out of place.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using algorithms::Algorithm;
using algorithms::Request;
using schedule::Collective;

std::vector<const Algorithm*> all_algorithms() {
  std::vector<const Algorithm*> all;
  for (int i = 0; i < schedule::kCollectives; i++)
    for (const Algorithm* algorithm : planner::algorithms_of(static_cast<Collective>(i)))
      all.push_back(algorithm);
  return all;
}

void verify_all_counts(const Algorithm& algorithm, const Request& request,
                       const std::vector<uint64_t>& counts) {
  if (!algorithm.applies(request)) return;
  const std::vector<schedule::Schedule> ranks = test::build_world(algorithm, request);
  for (uint64_t count : counts)
    for (uint64_t quantum : {1U, 4U}) {
      // Parts of the caller's and packed bits have quanta of their own (bind).
      if (quantum > 1 && algorithm.collective != Collective::allreduce &&
          algorithm.collective != Collective::broadcast)
        continue;
      const schedule::Binding binding =
          test::bind(algorithm.collective, request.world_size, count, quantum);
      const std::vector<std::string> problems =
          schedule::verify(ranks, binding, {algorithm.collective, request.root});
      ASSERT_TRUE(problems.empty())
          << ranks[0].name << " count " << count << " quantum " << quantum << " root "
          << request.root << " depth " << request.depth << ": " << problems[0];
    }
}

class Algorithms : public testing::TestWithParam<const Algorithm*> {};

TEST_P(Algorithms, KeepTheirPromiseInSmallWorlds) {
  const Algorithm& algorithm = *GetParam();
  for (int world = 1; world <= 9; world++) {
    const auto w = static_cast<uint64_t>(world);
    for (uint32_t pieces : {1U, 3U})
      for (uint32_t depth : {0U, 1U, 2U})
        for (bool in_place : {false, true})
          for (bool block : {false, true}) {
            if (block && !test::is_onebit(algorithm.collective)) continue;
            if (depth && (pieces == 1 || test::is_onebit(algorithm.collective))) continue;
            Request request = test::make_request(algorithm.collective, world, pieces);
            request.depth = depth;
            request.in_place = in_place;
            request.block_scale = block;
            request.root = world / 2;
            verify_all_counts(algorithm, request, {0, 1, w - 1, w, w + 1, 3 * w + 2});
          }
  }
}

TEST_P(Algorithms, KeepTheirPromiseInLargerWorlds) {
  const Algorithm& algorithm = *GetParam();
  for (int world : {16, 33}) {
    const auto w = static_cast<uint64_t>(world);
    for (bool in_place : {false, true}) {
      Request request = test::make_request(algorithm.collective, world, 3);
      request.depth = 2;
      request.in_place = in_place;
      request.block_scale = in_place;
      request.root = world - 1;
      verify_all_counts(algorithm, request, {0, w - 1, w + 1});
    }
  }
}

TEST_P(Algorithms, KeepTheirPromiseForAThousandElements) {
  const Algorithm& algorithm = *GetParam();
  const bool parts = algorithm.collective == Collective::reduce_scatter ||
                     algorithm.collective == Collective::allgather ||
                     algorithm.collective == Collective::alltoall;
  for (int world : {4, 7}) {
    const auto count = parts ? 1003 / static_cast<uint64_t>(world) : 1003;
    verify_all_counts(algorithm, test::make_request(algorithm.collective, world, 4), {count});
  }
}

INSTANTIATE_TEST_SUITE_P(BuiltIn, Algorithms, testing::ValuesIn(all_algorithms()),
                         [](const testing::TestParamInfo<const Algorithm*>& test) {
                           return std::string(collective_name(test.param->collective)) + "_" +
                                  test.param->name;
                         });

TEST(TreeBroadcast, ServesEveryRoot) {
  for (int world : {2, 5, 8})
    for (int root = 0; root < world; root++) {
      Request request = test::make_request(Collective::broadcast, world, 2);
      request.root = root;
      verify_all_counts(*planner::find(Collective::broadcast, "tree"), request, {9});
    }
}

// Sums are written down in rank order: the deterministic ones must read them so.
TEST(DirectAllreduce, SumsInRankOrder) {
  const Algorithm& direct = *planner::find(Collective::allreduce, "direct");
  for (const schedule::Schedule& rank :
       test::build_world(direct, test::make_request(Collective::allreduce, 5, 1)))
    for (const schedule::Operation& o : rank.operations) {
      if (o.kind != &schedule::kReduce) continue;
      ASSERT_EQ(o.reads.size(), 5U);
      for (uint32_t from = 0; from < 5; from++) {
        const schedule::Range& range = o.reads[from];
        const bool own = rank.buffers[range.buffer].role == schedule::Role::input;
        EXPECT_EQ(own, static_cast<int>(from) == rank.rank);
        if (!own) {
          EXPECT_EQ(range.slot, from);
        }
      }
    }
}

TEST(DirectAllreduce, ScratchStaysAsSmallAsItsDepth) {
  const Algorithm& direct = *planner::find(Collective::allreduce, "direct");
  Request request = test::make_request(Collective::allreduce, 4, 32);
  request.depth = 2;
  const schedule::Schedule rank = direct.build(request);
  schedule::Binding binding = test::bind(Collective::allreduce, 4, 4 * 32 * 1024);
  for (const schedule::Buffer& buffer : rank.buffers)
    if (buffer.role == schedule::Role::scratch) {
      EXPECT_EQ(schedule::buffer_bytes(buffer, binding), 4U * 2 * 1024 * 4);
    }
}

// One-bit receives find their place open from the start.
TEST(OnebitDirect, PostsReceivesWithoutWaiting) {
  const Algorithm& onebit = *planner::find(Collective::onebit_allreduce, "onebit_direct");
  for (bool block : {false, true}) {
    Request request = test::make_request(Collective::onebit_allreduce, 4, 8);
    request.block_scale = block;
    for (const schedule::Operation& o : onebit.build(request).operations)
      if (o.kind == &schedule::kRecv) {
        EXPECT_TRUE(o.after.empty());
      }
  }
}

// Nothing that a refused call must leave alone is written before the verdict.
TEST(OnebitDirect, WritesErrorsAndOutputAfterTheVerdictOnly) {
  for (Collective collective : {Collective::onebit_allreduce, Collective::onebit_reduce_scatter,
                                Collective::onebit_allgather})
    for (bool block : {false, true}) {
      Request request = test::make_request(collective, 3, 4);
      request.block_scale = block;
      const schedule::Schedule rank = planner::find(collective, "onebit_direct")->build(request);
      std::set<schedule::OperationId> behind;  // the verdict and all that comes after it
      for (schedule::OperationId id = 0; id < rank.operations.size(); id++) {
        const schedule::Operation& o = rank.operations[id];
        bool follows = o.kind == &schedule::kVerdict;
        for (schedule::OperationId before : o.after) follows = follows || behind.count(before);
        if (follows) behind.insert(id);
        for (const schedule::Range& range : o.writes)
          if (rank.buffers[range.buffer].role != schedule::Role::scratch) {
            EXPECT_TRUE(follows) << schedule::describe(rank, id);
          }
      }
    }
}

// Signs leave before the verdict; the errors that they leave behind are written before anything of
// their piece is delivered, since a consumer may change what the producer reads.
TEST(OnebitDirect, SettlesEarlySignsBeforeDelivery) {
  for (bool block : {false, true}) {
    Request request = test::make_request(Collective::onebit_allreduce, 3, 8);
    request.block_scale = block;
    const schedule::Schedule rank =
        planner::find(Collective::onebit_allreduce, "onebit_direct")->build(request);
    const auto& operations = rank.operations;
    std::vector<std::set<schedule::OperationId>> before(operations.size());  // all, not only direct
    std::map<std::pair<uint32_t, uint32_t>, schedule::OperationId> settled;  // (chunk, piece)
    uint32_t signs = 0, delivered = 0;
    for (schedule::OperationId id = 0; id < operations.size(); id++) {
      const schedule::Operation& o = operations[id];
      for (schedule::OperationId earlier : o.after) {
        before[id].insert(earlier);
        before[id].insert(before[earlier].begin(), before[earlier].end());
      }
      if (o.kind == &schedule::kSign) {
        signs++;
        for (schedule::OperationId earlier : before[id])
          EXPECT_NE(operations[earlier].kind, &schedule::kVerdict);
      }
      if (o.kind == &schedule::kResidual) settled[{o.writes[0].chunk, o.writes[0].piece}] = id;
      const auto own = o.kind != &schedule::kUnpack
                           ? settled.end()
                           : settled.find({o.writes[0].chunk, o.writes[0].piece});
      if (own != settled.end()) {
        delivered++;
        EXPECT_EQ(before[id].count(own->second), 1U) << schedule::describe(rank, id);
      }
    }
    EXPECT_EQ(signs, 3U * (block ? 4 : 8));
    EXPECT_EQ(settled.size(), signs);
    EXPECT_EQ(delivered, signs);
  }
}

}  // namespace
}  // namespace bitrail
