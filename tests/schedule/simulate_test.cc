// The simulator against closed forms, and what it says about pipelining.
#include "runtime/schedule/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/schedule/worlds.h"

namespace bitrail::schedule {
namespace {

Simulation run(Collective collective, const char* algorithm, int world, uint32_t pieces,
               uint64_t elements, const CostModel& model) {
  const algorithms::Request request = test::make_request(collective, world, pieces);
  const std::vector<Schedule> ranks =
      test::build_world(*planner::find(collective, algorithm), request);
  return simulate(ranks, test::bind(collective, world, elements), model);
}

CostModel wire_only() {
  CostModel model;
  model.alpha = 7;
  model.beta = 0.5;
  model.gamma = 0;
  return model;
}

constexpr uint64_t kElementsTested = 4096;
constexpr double kBytes = 4.0 * kElementsTested;

TEST(Simulate, RingTakesTwoTimesWorldLessOneSteps) {
  for (int world : {2, 4, 8}) {
    const Simulation s = run(Collective::allreduce, "ring", world, 1, kElementsTested, wire_only());
    EXPECT_TRUE(s.complete);
    EXPECT_NEAR(s.microseconds, 2 * (world - 1) * (7 + kBytes / world * 0.5), 1e-6);
    for (uint64_t sent : s.bytes_sent) EXPECT_EQ(sent, 2 * (world - 1) * kBytes / world);
  }
}

TEST(Simulate, DoublingTakesTheLogarithmOfTheWorld) {
  EXPECT_NEAR(
      run(Collective::allreduce, "doubling", 8, 1, kElementsTested, wire_only()).microseconds,
      3 * (7 + kBytes * 0.5), 1e-6);
}

TEST(Simulate, DirectTakesTwoLatencies) {
  for (int world : {2, 4, 8})
    EXPECT_NEAR(
        run(Collective::allreduce, "direct", world, 1, kElementsTested, wire_only()).microseconds,
        2 * (7 + (world - 1) * kBytes / world * 0.5), 1e-6);
}

// A link's direction is shared: seven ranks' vectors enter rank 0 one after the other.
TEST(Simulate, ReceiversLinkIsShared) {
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < 8; rank++) {
    Builder builder("incast", rank, 8);
    const BufferId in = builder.buffer({"in", Role::input, kDataUnit, kElements, 1, 1, 1});
    const BufferId out = builder.buffer({"out", Role::scratch, kDataUnit, kElements, 8, 1, 1});
    for (int from = 1; rank == 0 && from < 8; from++)
      builder.recv(from, 0, {out, static_cast<uint32_t>(from), 0, 1, 0, 1});
    if (rank != 0) builder.send(0, 0, {in, 0, 0, 1, 0, 1});
    ranks.push_back(builder.finish());
  }
  const Simulation s =
      simulate(ranks, test::bind(Collective::allreduce, 8, kElementsTested), wire_only());
  EXPECT_NEAR(s.microseconds, 7 + 7 * kBytes * 0.5, 1e-6);
  EXPECT_EQ(s.bytes_received[0], 7 * static_cast<uint64_t>(kBytes));
}

TEST(Simulate, LanesRunSideBySide) {
  for (uint32_t lanes : {1U, 2U}) {
    Builder builder("lanes", 0, 1);
    const BufferId in = builder.buffer({"in", Role::input, kByteUnit, kElements, 1, 1, 1});
    const BufferId out = builder.buffer({"out", Role::scratch, kByteUnit, kElements, 4, 1, 1});
    for (uint32_t i = 0; i < 4; i++) {
      Operation copy;
      copy.kind = &kCopy;
      copy.lane = i % lanes;
      copy.reads = {{in, 0, 0, 1, 0, 1}};
      copy.writes = {{out, i, 0, 1, 0, 1}};
      builder.add(copy);
    }
    Binding binding;
    binding.counts = {1000};
    CostModel model;
    model.gamma = 0.01;  // 20 us a copy
    EXPECT_NEAR(simulate({builder.finish()}, binding, model).microseconds, 80.0 / lanes, 1e-6);
  }
}

TEST(Simulate, SaysWhenSomethingNeverRuns) {
  Builder builder("alone", 0, 2);
  builder.recv_signal(1, 0);
  Builder other("silent", 1, 2);
  const Simulation s = simulate({builder.finish(), other.finish()}, Binding{}, wire_only());
  EXPECT_FALSE(s.complete);
}

// A 1-bit allreduce of 64 MiB of floats over 100 Mbit/s, against the time its own bytes need.
double over_wire_time(bool block, uint32_t pieces) {
  algorithms::Request request = test::make_request(Collective::onebit_allreduce, 4, pieces);
  request.block_scale = block;
  const std::vector<Schedule> ranks =
      test::build_world(*planner::find(Collective::onebit_allreduce, "onebit_direct"), request);
  Binding binding;
  binding.counts = {16U << 20, 2};
  binding.quantum = binding.piece_quantum = binding.group = 4096;
  CostModel model;
  model.alpha = 100;
  model.beta = 0.08;
  model.gamma = 0.0002;  // 5 GB/s
  const Simulation s = simulate(ranks, binding, model);
  EXPECT_TRUE(s.complete);
  return s.microseconds /
         (static_cast<double>(*std::max_element(s.bytes_sent.begin(), s.bytes_sent.end())) *
          model.beta);
}

TEST(Simulate, OnebitPiecesHideTheComputation) {
  const double block = over_wire_time(true, 16);
  const double segment = over_wire_time(false, 16);
  const double unpipelined = over_wire_time(true, 1);
  RecordProperty("block", std::to_string(block));
  RecordProperty("segment", std::to_string(segment));
  RecordProperty("unpipelined", std::to_string(unpipelined));
  EXPECT_GE(block, 1.0);
  EXPECT_LE(block, 1.12);
  EXPECT_LE(segment, 1.25);
  EXPECT_LT(block, segment);
  EXPECT_GT(unpipelined, segment);
}

}  // namespace
}  // namespace bitrail::schedule
