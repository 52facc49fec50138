// Nested schedules: a direct reduce-scatter and a ring all-gather, called one after the other, are
// an allreduce.
#include "runtime/schedule/flatten.h"

#include <gtest/gtest.h>

#include "runtime/schedule/builder.h"
#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail::schedule {
namespace {

constexpr uint32_t kSecondCall = 1000;  // messages: behind all of the first call's

Schedule composed(int rank, int world, uint32_t second_call_messages) {
  algorithms::Request request = test::make_request(Collective::reduce_scatter, world, 2);
  request.rank = rank;
  request.in_place = true;  // its result is a part of one whole buffer, as is the all-gather's
  const Schedule scatter = planner::find(Collective::reduce_scatter, "direct")->build(request);
  request.collective = Collective::allgather;
  const Schedule gather = planner::find(Collective::allgather, "ring")->build(request);
  Builder builder("composed", rank, world);
  const BufferId data = builder.buffer({"data", Role::output, kDataUnit, kElements, 1, 1, 1});
  builder.call(scatter, {data}, 0);
  builder.call(gather, {data}, second_call_messages);
  return builder.finish();
}

std::vector<Schedule> composed_world(int world, uint32_t second_call_messages) {
  std::vector<Schedule> ranks;
  ranks.reserve(static_cast<size_t>(world));
  for (int rank = 0; rank < world; rank++)
    ranks.push_back(composed(rank, world, second_call_messages));
  return ranks;
}

TEST(Flatten, CallsComposeIntoAnAllreduce) {
  for (int world : {1, 2, 3, 5}) {
    const std::vector<Schedule> ranks = composed_world(world, kSecondCall);
    for (uint64_t count : {0U, 1U, 9U, 40U}) {
      const Binding binding = test::bind(Collective::allreduce, world, count);
      EXPECT_EQ(test::first(verify(ranks, binding, {Collective::allreduce, 0})), "none");
    }
  }
}

TEST(Flatten, MessagesOfTwoCallsMustNotMeet) {
  const Binding binding = test::bind(Collective::allreduce, 3, 12);
  EXPECT_NE(test::first(verify(composed_world(3, 0), binding, {Collective::allreduce, 0})), "none");
}

TEST(Flatten, LeavesNoCallAndKeepsScratchApart) {
  const Schedule flat = flatten(composed(1, 3, kSecondCall));
  size_t scratch = 0;
  for (const Buffer& buffer : flat.buffers) scratch += buffer.role == Role::scratch;
  EXPECT_EQ(scratch, 1U);  // the reduce-scatter's
  for (OperationId id = 0; id < flat.operations.size(); id++) {
    EXPECT_NE(flat.operations[id].kind, &kCall);
    for (OperationId before : flat.operations[id].after) EXPECT_LT(before, id);
  }
}

// Ranks of a group, as seen from the world: pairs (0, 2) and (1, 3) of four.
TEST(Flatten, TranslatesRanks) {
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < 4; rank++) {
    algorithms::Request request = test::make_request(Collective::allreduce, 2, 1);
    request.rank = rank / 2;
    request.in_place = true;
    const Schedule pair = planner::find(Collective::allreduce, "doubling")->build(request);
    request.rank = rank % 2;
    const Schedule cross = planner::find(Collective::allreduce, "doubling")->build(request);
    Builder builder("hierarchy", rank, 4);
    const BufferId data = builder.buffer({"data", Role::output, kDataUnit, kElements, 1, 1, 1});
    builder.call(pair, {data}, 0, {rank % 2, rank % 2 + 2});
    builder.call(cross, {data}, 0, {rank / 2 * 2, rank / 2 * 2 + 1});
    ranks.push_back(builder.finish());
  }
  const Binding binding = test::bind(Collective::allreduce, 4, 7);
  EXPECT_EQ(test::first(verify(ranks, binding, {Collective::allreduce, 0})), "none");
}

// An empty nested schedule passes the order on.
TEST(Flatten, EmptyCallKeepsTheOrderAroundIt) {
  Builder builder("around", 0, 2);
  const BufferId data = builder.buffer({"data", Role::output, kDataUnit, kElements, 1, 1, 1});
  const Range all = {data, 0, 0, 1, 0, 1};
  builder.recv(1, 0, all);
  Operation call;
  Schedule nothing;
  call.kind = &kCall;
  call.nested = &nothing;
  call.reads = call.writes = {all};
  builder.add(call);
  Operation last;
  last.kind = &kSend;
  last.peer = 1;
  last.after = {1};
  builder.add(last);
  const Schedule flat = flatten(builder.finish());
  ASSERT_EQ(flat.operations.size(), 2U);
  EXPECT_EQ(flat.operations[1].after, std::vector<OperationId>{0});
}

}  // namespace
}  // namespace bitrail::schedule
