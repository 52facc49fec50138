#include "runtime/schedule/builder.h"

#include <gtest/gtest.h>

namespace bitrail::schedule {
namespace {

using Ids = std::vector<OperationId>;

struct Fixture : testing::Test {
  Builder builder{"test", 0, 4};
  BufferId in = builder.buffer({"in", Role::input, kDataUnit, kElements, 1, 1, 1});
  BufferId out = builder.buffer({"out", Role::output, kDataUnit, kElements, 1, 1, 1});
  Range chunk(BufferId b, uint32_t j) const { return {b, 0, j, 4, 0, 1}; }
  Range piece(BufferId b, uint32_t j, uint32_t k) const { return {b, 0, j, 4, k, 2}; }
  Range all(BufferId b) const { return {b, 0, 0, 1, 0, 1}; }
};

TEST_F(Fixture, ReadersFollowTheirWriter) {
  const OperationId write = builder.add(kCopy, {all(in)}, {all(out)});
  const OperationId a = builder.send(1, 0, chunk(out, 1));
  const OperationId b = builder.send(2, 0, chunk(out, 2));
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[a].after, Ids{write});
  EXPECT_EQ(s.operations[b].after, Ids{write});  // readers need no order among themselves
}

TEST_F(Fixture, WritersFollowReadersAndWriters) {
  const OperationId send = builder.send(1, 0, chunk(out, 1));
  const OperationId recv = builder.recv(1, 0, chunk(out, 1));
  const OperationId again = builder.recv(2, 0, chunk(out, 1));
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[recv].after, Ids{send});
  EXPECT_EQ(s.operations[again].after, Ids{recv});  // send is before recv already
}

TEST_F(Fixture, DisjointPartsNeedNoEdge) {
  builder.recv(1, 0, chunk(out, 1));
  const OperationId other_chunk = builder.recv(2, 0, chunk(out, 2));
  builder.recv(1, 1, piece(in, 3, 0));
  const OperationId other_piece = builder.recv(1, 2, piece(in, 3, 1));
  const Schedule s = builder.finish();
  EXPECT_TRUE(s.operations[other_chunk].after.empty());
  EXPECT_TRUE(s.operations[other_piece].after.empty());
}

TEST_F(Fixture, PiecesMeetTheirChunk) {
  const OperationId first = builder.recv(1, 0, piece(out, 1, 0));
  const OperationId second = builder.recv(1, 1, piece(out, 1, 1));
  const OperationId whole = builder.send(2, 0, chunk(out, 1));
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[whole].after, (Ids{first, second}));
}

TEST_F(Fixture, SpansMeetTheChunksInside) {
  const Range last_two = {out, 0, 2, 4, 0, 1, 2};
  const OperationId second = builder.recv(1, 0, chunk(out, 1));
  const OperationId fourth = builder.recv(1, 1, piece(out, 3, 1));
  const OperationId span = builder.recv(2, 0, last_two);
  const OperationId third = builder.send(3, 0, chunk(out, 2));
  const OperationId first = builder.send(3, 1, {out, 0, 0, 4, 0, 1, 2});
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[span].after, Ids{fourth});
  EXPECT_EQ(s.operations[third].after, Ids{span});  // which covers what is inside
  EXPECT_EQ(s.operations[first].after, Ids{second});
}

TEST_F(Fixture, DifferentCutsAreTakenAsOverlapping) {
  const OperationId fourth = builder.recv(1, 0, chunk(out, 0));
  const OperationId third = builder.send(2, 0, {out, 0, 2, 3, 0, 1});
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[third].after, Ids{fourth});
}

TEST_F(Fixture, SlotsAreIndependentAndHoldAnyChunk) {
  const BufferId slots = builder.buffer({"slots", Role::scratch, kDataUnit, kElements, 2, 4, 1});
  const OperationId first = builder.recv(1, 0, {slots, 0, 1, 4, 0, 1});
  const OperationId other_slot = builder.recv(2, 0, {slots, 1, 1, 4, 0, 1});
  const OperationId reuse = builder.recv(1, 1, {slots, 0, 2, 4, 0, 1});  // same place
  const Schedule s = builder.finish();
  EXPECT_TRUE(s.operations[other_slot].after.empty());
  EXPECT_EQ(s.operations[reuse].after, Ids{first});
}

TEST_F(Fixture, PieceSizedSlotIsOnePlace) {
  const BufferId ring = builder.buffer({"ring", Role::scratch, kDataUnit, kElements, 2, 4, 8});
  const OperationId recv = builder.recv(1, 0, {ring, 0, 0, 4, 0, 8});
  const OperationId use = builder.add(kReduce, {{ring, 0, 0, 4, 0, 8}}, {piece(out, 0, 0)});
  const OperationId reuse = builder.recv(1, 2, {ring, 0, 0, 4, 2, 8});
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[use].after, Ids{recv});
  EXPECT_EQ(s.operations[reuse].after, (Ids{recv, use}));
}

TEST_F(Fixture, AccumulatorDoesNotWaitForItself) {
  const OperationId first = builder.add(kReduce, {chunk(in, 0), chunk(out, 0)}, {chunk(out, 0)});
  const OperationId second = builder.add(kReduce, {chunk(in, 1), chunk(out, 0)}, {chunk(out, 0)});
  const Schedule s = builder.finish();
  EXPECT_TRUE(s.operations[first].after.empty());
  EXPECT_EQ(s.operations[second].after, Ids{first});
}

TEST_F(Fixture, FurtherEdgesAreKeptOnce) {
  const OperationId first = builder.recv(1, 0, chunk(out, 1));
  const OperationId signal = builder.recv_signal(2, 0);
  const OperationId last = builder.send(3, 0, chunk(out, 1), {signal, first});
  const Schedule s = builder.finish();
  EXPECT_EQ(s.operations[last].after, (Ids{first, signal}));
  EXPECT_TRUE(s.operations[signal].reads.empty() && s.operations[signal].writes.empty());
}

TEST(Order, StartsNextToTheOwnRank) {
  const Builder builder("test", 2, 4);
  EXPECT_EQ(builder.send_order(), (std::vector<int>{3, 0, 1}));
  EXPECT_EQ(builder.recv_order(), (std::vector<int>{1, 0, 3}));
}

}  // namespace
}  // namespace bitrail::schedule
