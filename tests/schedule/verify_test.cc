// The verifier must see what is wrong: good schedules, spoilt in one place.
#include "runtime/schedule/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/schedule/worlds.h"

namespace bitrail {
namespace {

using schedule::Collective;
using schedule::Operation;
using schedule::OperationId;
using schedule::OperationKind;
using schedule::Range;
using schedule::Schedule;

// An operation that does nothing stands where one was taken away, so that ids stay.
const OperationKind kNothing = {"nothing", schedule::Meaning::none};

struct World {
  std::vector<Schedule> ranks;
  schedule::Binding binding;
  schedule::Promise promise;

  std::vector<std::string> problems() const { return verify(ranks, binding, promise); }
};

World make_world(Collective collective, const char* algorithm, int world_size, uint32_t pieces,
                 bool in_place = false, bool block = false,
                 const topology::Placement* placement = nullptr) {
  algorithms::Request request = test::make_request(collective, world_size, pieces);
  request.depth = 2;
  request.in_place = in_place;
  request.block_scale = block;
  request.placement = placement;
  World world;
  world.ranks = test::build_world(*planner::find(collective, algorithm), request);
  world.binding =
      test::bind(collective, world_size, 16ULL * static_cast<uint64_t>(world_size) * pieces);
  world.promise = {collective, 0};
  EXPECT_EQ(test::first(world.problems()), "none");
  return world;
}

// Ids of the operations of a kind, in order.
std::vector<OperationId> of_kind(const Schedule& schedule, const OperationKind& kind) {
  std::vector<OperationId> ids;
  for (OperationId id = 0; id < schedule.operations.size(); id++)
    if (schedule.operations[id].kind == &kind) ids.push_back(id);
  return ids;
}

void expect_seen(const World& world, const std::string& text) {
  const std::vector<std::string> problems = world.problems();
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                          [&](const std::string& p) { return p.find(text) != std::string::npos; }))
      << "expected \"" << text << "\", got: " << test::first(problems);
}

void take_away(Operation* operation) {
  *operation = Operation{};
  operation->kind = &kNothing;
}

class Spoilt : public testing::Test {
 protected:
  World world = make_world(Collective::allreduce, "direct", 4, 4);
  Operation& pick(size_t rank, const OperationKind& kind, size_t index) {
    return world.ranks[rank].operations[of_kind(world.ranks[rank], kind)[index]];
  }
};

TEST_F(Spoilt, MissingSend) {
  take_away(&pick(1, schedule::kSend, 5));
  expect_seen(world, "has 0 sends and 1 recvs");
  expect_seen(world, "never completes");
}

TEST_F(Spoilt, MissingRecv) {
  take_away(&pick(2, schedule::kRecv, 0));
  expect_seen(world, "has 1 sends and 0 recvs");
}

TEST_F(Spoilt, SwappedPeers) {
  std::swap(pick(0, schedule::kSend, 0).peer, pick(0, schedule::kSend, 1).peer);
  expect_seen(world, "instead of");
}

TEST_F(Spoilt, PeerOutOfRange) {
  pick(0, schedule::kSend, 0).peer = 4;
  expect_seen(world, "has peer 4");
}

TEST_F(Spoilt, MessageTwice) {
  Operation& send = pick(3, schedule::kSend, 0);
  for (OperationId id : of_kind(world.ranks[3], schedule::kSend)) {
    Operation& other = world.ranks[3].operations[id];
    if (&other != &send && other.peer == send.peer) other.message = send.message;
  }
  expect_seen(world, "sends and 1 recvs");
}

TEST_F(Spoilt, DoubleContribution) {
  Operation& reduce = pick(0, schedule::kReduce, 1);
  reduce.reads.push_back(reduce.reads[2]);
  expect_seen(world, "2 x rank 2");
}

TEST_F(Spoilt, MissingContribution) {
  pick(0, schedule::kReduce, 1).reads.pop_back();
  expect_seen(world, "instead of");
}

TEST_F(Spoilt, WrongChunkSent) {
  Range& range = pick(1, schedule::kSend, 0).reads[0];
  range.chunk = (range.chunk + 1) % 4;
  expect_seen(world, "instead of");
}

TEST_F(Spoilt, WrongPieceStored) {
  pick(2, schedule::kReduce, 0).writes[0].piece = 1;
  EXPECT_FALSE(world.problems().empty());
}

TEST_F(Spoilt, LengthsDiffer) {
  Range& range = pick(1, schedule::kSend, 0).reads[0];
  range.pieces = 2;
  expect_seen(world, "bytes awaited");
}

TEST_F(Spoilt, EdgeForwards) {
  Schedule& rank = world.ranks[0];
  const auto last = static_cast<OperationId>(rank.operations.size() - 1);
  rank.operations[0].after.push_back(last);
  expect_seen(world, "not backwards");
}

TEST_F(Spoilt, MissingReduce) {
  take_away(&pick(0, schedule::kReduce, 2));
  expect_seen(world, "reads what nobody wrote");
}

TEST_F(Spoilt, ScratchIsSentUnordered) {
  Operation& send = pick(1, schedule::kSend, 0);
  schedule::BufferId scratch = 0;
  while (world.ranks[1].buffers[scratch].role != schedule::Role::scratch) scratch++;
  send.reads[0].buffer = scratch;  // slot 0, whose receive has not been waited for
  expect_seen(world, "in no order");
}

// The scratch slots hold two pieces of each peer; the third may come when the first is summed.
TEST_F(Spoilt, ScratchSlotReusedEarly) {
  for (OperationId id : of_kind(world.ranks[0], schedule::kRecv)) {
    Operation& recv = world.ranks[0].operations[id];
    const Range& range = recv.writes[0];
    if (world.ranks[0].buffers[range.buffer].role != schedule::Role::scratch) continue;
    if (range.piece == 2) recv.after.clear();
  }
  expect_seen(world, "in no order");
}

TEST_F(Spoilt, SlotBeyondTheBuffer) {
  Operation& recv = pick(0, schedule::kRecv, 0);
  recv.writes[0].slot = 99;
  expect_seen(world, "slot 99");
}

TEST_F(Spoilt, ChunksOfAnotherKind) {
  Operation& recv = pick(0, schedule::kRecv, 0);
  recv.writes[0].chunks = 8;
  expect_seen(world, "chunks of 8");
}

// Spans of chunks: only in whole buffers, uncut, and not beyond the last chunk.
TEST(Verify, SeesWrongSpans) {
  const World good = make_world(Collective::allgather, "bruck", 8, 1);
  const auto with = [&](const std::function<void(Range*)>& spoil) {
    World world = good;
    for (OperationId id : of_kind(world.ranks[0], schedule::kSend)) {
      Range& range = world.ranks[0].operations[id].reads[0];
      if (range.span == 4) spoil(&range);
    }
    return world;
  };
  expect_seen(with([](Range* range) { range->chunk = 5; }), "4 chunks from chunk 5 of 8");
  expect_seen(with([](Range* range) { range->span = 0; }), "0 chunks");
  expect_seen(with([](Range* range) { range->span = 3; }), "bytes awaited");
  expect_seen(with([](Range* range) { range->pieces = 2; }), "4 chunks");
  World slots = make_world(Collective::allreduce, "direct", 4, 1);
  for (OperationId id : of_kind(slots.ranks[0], schedule::kRecv)) {
    Range& range = slots.ranks[0].operations[id].writes[0];
    if (slots.ranks[0].buffers[range.buffer].fraction > 1) range = {range.buffer, 0, 0, 4, 0, 1, 2};
  }
  expect_seen(slots, "2 chunks from chunk 0 of 4");
}

TEST(Verify, SeesDeadlockAcrossRanks) {
  World world = make_world(Collective::allgather, "ring", 3, 1);
  // Everybody waits for the neighbour before sending: legal on each rank, stuck together.
  for (Schedule& rank : world.ranks) {
    std::vector<Operation>& o = rank.operations;
    ASSERT_EQ(o[0].kind, &schedule::kSend);
    ASSERT_EQ(o[1].kind, &schedule::kRecv);
    std::swap(o[0], o[1]);
    for (Operation& later : o)
      for (OperationId& before : later.after) before = before <= 1 ? 1 - before : before;
    o[1].after = {0};
  }
  expect_seen(world, "never completes");
}

TEST(Verify, SeesBarrierThatForgetsRanks) {
  World world = make_world(Collective::barrier, "dissemination", 5, 1);
  for (Schedule& rank : world.ranks)
    for (Operation& operation : rank.operations) operation.after.clear();
  expect_seen(world, "without having heard");
}

TEST(Verify, SeesErrorCarriedAsData) {
  World world = make_world(Collective::onebit_allreduce, "onebit_direct", 3, 2);
  Operation& residual =
      world.ranks[1].operations[of_kind(world.ranks[1], schedule::kServerResidual)[0]];
  residual.writes.clear();  // the server error keeps the average: it would enter twice next time
  for (Operation& o : world.ranks[1].operations)
    if (o.kind == &schedule::kUnpackAverage) o.reads.push_back(o.reads[0]);
  expect_seen(world, "2 x rank 0");
}

// Whether `target` comes before `id` by some path.
bool reaches(const Schedule& schedule, OperationId id, OperationId target) {
  std::vector<bool> seen(schedule.operations.size());
  std::vector<OperationId> open = {id};
  while (!open.empty()) {
    const OperationId next = open.back();
    open.pop_back();
    for (OperationId before : schedule.operations[next].after) {
      if (before == target) return true;
      if (!seen[before]) open.push_back(before);
      seen[before] = true;
    }
  }
  return false;
}

bool conflict(const Schedule& schedule, const schedule::Binding& binding, OperationId a,
              OperationId b) {
  const auto touch = [&](const std::vector<Range>& x, const std::vector<Range>& y) {
    for (const Range& r : x)
      for (const Range& s : y) {
        const schedule::Bounds m = element_bounds(schedule, r, binding);
        const schedule::Bounds n = element_bounds(schedule, s, binding);
        if (r.buffer == s.buffer && r.slot == s.slot && m.begin < n.end && n.begin < m.end)
          return true;
      }
    return false;
  };
  const Operation& x = schedule.operations[a];
  const Operation& y = schedule.operations[b];
  return touch(x.writes, y.writes) || touch(x.writes, y.reads) || touch(x.reads, y.writes);
}

// Every edge that orders a conflict and has no other path is missed when it is gone, and no other.
void expect_every_edge_counts(const World& good) {
  size_t necessary = 0;
  const size_t rank = 1;
  for (OperationId id = 0; id < good.ranks[rank].operations.size(); id++) {
    const size_t edges = good.ranks[rank].operations[id].after.size();
    for (size_t e = 0; e < edges; e++) {
      World world = good;
      Schedule& spoilt = world.ranks[rank];
      std::vector<OperationId>& after = spoilt.operations[id].after;
      const OperationId before = after[e];
      after.erase(after.begin() + static_cast<std::ptrdiff_t>(e));
      std::vector<std::string> problems;
      schedule::verify_order(spoilt, world.binding, &problems);
      const bool needed =
          !reaches(spoilt, id, before) && conflict(spoilt, world.binding, before, id);
      necessary += needed;
      EXPECT_EQ(!problems.empty(), needed)
          << spoilt.name << ": " << describe(spoilt, before) << " -> " << describe(spoilt, id);
    }
  }
  EXPECT_GT(necessary, 0U);
}

TEST(Verify, MissesNoEdge) {
  for (bool in_place : {false, true}) {
    expect_every_edge_counts(make_world(Collective::allreduce, "direct", 3, 4, in_place));
    expect_every_edge_counts(make_world(Collective::allreduce, "ring", 4, 2, in_place));
    expect_every_edge_counts(make_world(Collective::allreduce, "doubling", 6, 1, in_place));
    expect_every_edge_counts(make_world(Collective::reduce_scatter, "ring", 4, 2, in_place));
    expect_every_edge_counts(make_world(Collective::allreduce, "halving", 6, 1, in_place));
    expect_every_edge_counts(make_world(Collective::allreduce, "tree", 5, 4, in_place));
    expect_every_edge_counts(make_world(Collective::allgather, "bruck", 6, 1, in_place));
    const topology::Placement nodes = topology::place_ranks({0, 0, 1, 1, 1});
    for (Collective collective : {Collective::allreduce, Collective::reduce_scatter})
      expect_every_edge_counts(make_world(collective, "hier", 5, 3, in_place, false, &nodes));
    for (bool block : {false, true})
      expect_every_edge_counts(
          make_world(Collective::onebit_allreduce, "onebit_direct", 3, 2, in_place, block));
  }
}

}  // namespace
}  // namespace bitrail
