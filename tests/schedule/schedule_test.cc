#include "runtime/schedule/schedule.h"

#include <gtest/gtest.h>

namespace bitrail::schedule {
namespace {

Schedule with_buffer(Buffer buffer) {
  Schedule schedule;
  schedule.buffers.push_back(std::move(buffer));
  return schedule;
}

// Chunks and pieces follow each other without gap or overlap and cover everything.
TEST(Bounds, ChunksAndPiecesTileTheWhole) {
  const Schedule schedule = with_buffer({"data", Role::input, kDataUnit, kElements, 1, 1, 1});
  for (uint64_t n : {0U, 1U, 6U, 7U, 8U, 100U, 1003U})
    for (uint32_t chunks : {1U, 3U, 7U})
      for (uint32_t pieces : {1U, 2U, 5U})
        for (uint64_t quantum : {1U, 8U}) {
          Binding binding;
          binding.counts = {n};
          binding.quantum = quantum;
          binding.piece_quantum = quantum;
          uint64_t at = 0;
          for (uint32_t chunk = 0; chunk < chunks; chunk++)
            for (uint32_t piece = 0; piece < pieces; piece++) {
              const Range range = {0, 0, chunk, chunks, piece, pieces};
              const Bounds bounds = element_bounds(schedule, range, binding);
              if (bounds.empty()) continue;
              EXPECT_EQ(bounds.begin, at);
              EXPECT_EQ(bounds.begin % quantum, 0U);
              at = bounds.end;
            }
          EXPECT_EQ(at, n);
        }
}

TEST(Bounds, SpansEndWhereTheirLastChunkEnds) {
  const Schedule schedule = with_buffer({"data", Role::input, kDataUnit, kElements, 1, 1, 1});
  for (uint64_t n : {0U, 3U, 10U, 64U})
    for (uint32_t first = 0; first < 8; first++)
      for (uint32_t span = 1; first + span <= 8; span++) {
        Binding binding;
        binding.counts = {n};
        const Bounds bounds = global_bounds(schedule, {0, 0, first, 8, 0, 1, span}, binding);
        EXPECT_EQ(bounds.begin, global_bounds(schedule, {0, 0, first, 8, 0, 1}, binding).begin);
        EXPECT_EQ(bounds.end,
                  global_bounds(schedule, {0, 0, first + span - 1, 8, 0, 1}, binding).end);
      }
}

TEST(Bounds, LateChunkIsShortAndStandsAtTheSlotsBegin) {
  const Schedule whole = with_buffer({"data", Role::input, kDataUnit, kElements, 1, 1, 1});
  const Schedule slots = with_buffer({"slots", Role::scratch, kDataUnit, kElements, 4, 4, 1});
  Binding binding;
  binding.counts = {10};  // chunks of 3, 3, 3, 1
  for (uint32_t chunk = 0; chunk < 4; chunk++) {
    const Range range = {0, 2, chunk, 4, 0, 1};
    const Bounds in_slot = element_bounds(slots, range, binding);
    EXPECT_EQ(in_slot.begin, 0U);
    EXPECT_EQ(in_slot.size(), chunk == 3 ? 1U : 3U);
    const Bounds global = global_bounds(slots, range, binding);
    EXPECT_EQ(global.begin, chunk * 3);
    EXPECT_EQ(global.size(), in_slot.size());
    EXPECT_EQ(element_bounds(whole, {0, 0, chunk, 4, 0, 1}, binding).begin, global.begin);
  }
}

TEST(Bounds, PieceSizedSlotsHoldOnePiece) {
  const Schedule schedule = with_buffer({"ring", Role::scratch, kDataUnit, kElements, 2, 2, 4});
  Binding binding;
  binding.counts = {80};  // chunks of 40, pieces of 10
  EXPECT_EQ(slot_elements(schedule.buffers[0], binding), 10U);
  EXPECT_EQ(slot_bytes(schedule.buffers[0], binding), 64U);  // 40 bytes in cache lines
  EXPECT_EQ(buffer_bytes(schedule.buffers[0], binding), 128U);
  const Bounds bytes = byte_bounds(schedule, {0, 1, 1, 2, 3, 4}, binding);
  EXPECT_EQ(bytes.begin, 64U);
  EXPECT_EQ(bytes.end, 104U);
}

TEST(Bounds, CallersBuffersAreDense) {
  Binding binding;
  binding.counts = {5};
  binding.data_bits = 16;
  EXPECT_EQ(buffer_bytes({"in", Role::input, kDataUnit, kElements, 1, 1, 1}, binding), 10U);
  EXPECT_EQ(buffer_bytes({"e", Role::worker_error, kFloatUnit, kElements, 1, 1, 1}, binding), 20U);
}

TEST(Bounds, BitsArePacked) {
  const Schedule schedule = with_buffer({"bits", Role::scratch, kBitUnit, kElements, 1, 1, 1});
  Binding binding;
  binding.counts = {64};
  binding.quantum = 8;
  EXPECT_EQ(byte_bounds(schedule, {0, 0, 1, 2, 0, 1}, binding).begin, 4U);
  EXPECT_EQ(byte_bounds(schedule, {0, 0, 1, 2, 0, 1}, binding).end, 8U);
}

// A block's record is its scale and its bits; the last one may be short.
TEST(Bounds, GroupsCarryTheirScale) {
  const Schedule schedule = with_buffer({"bits", Role::scratch, kBitBlockUnit, kElements, 1, 1, 1});
  Binding binding;
  binding.group = 16;
  binding.quantum = binding.piece_quantum = 16;
  binding.counts = {72};  // records of 16, 16, 16, 16, 8 values: 6, 6, 6, 6, 5 bytes
  EXPECT_EQ(slot_bytes(schedule.buffers[0], binding), 64U);  // 29 in cache lines
  const uint64_t ends[] = {12, 24, 29};
  uint64_t at = 0;
  for (uint32_t piece = 0; piece < 3; piece++) {
    const Bounds bytes = byte_bounds(schedule, {0, 0, 0, 1, piece, 3}, binding);
    EXPECT_EQ(bytes.begin, at);
    EXPECT_EQ(bytes.end, ends[piece]);
    at = bytes.end;
  }
  // Behind the last record there is nothing, not a piece of one.
  EXPECT_TRUE(byte_bounds(schedule, {0, 0, 0, 1, 7, 8}, binding).empty());
}

TEST(Hash, ChangesWithEverythingAnotherRankCouldNotice) {
  Schedule schedule = with_buffer({"in", Role::input, kDataUnit, kElements, 1, 1, 1});
  Operation send;
  send.kind = &kSend;
  send.peer = 1;
  send.reads = {{0, 0, 0, 2, 0, 1}};
  schedule.operations = {send, send};
  const uint64_t before = hash(schedule);
  EXPECT_EQ(hash(Schedule(schedule)), before);
  const auto changed = [&](auto change) {
    Schedule other = schedule;
    change(&other);
    return hash(other) != before;
  };
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].kind = &kRecv; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].peer = 2; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].message = 1; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].reads[0].chunk = 1; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].reads[0].span = 2; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[0].reads.clear(); }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations[1].after = {0}; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->buffers[0].unit = kBitUnit; }));
  EXPECT_TRUE(changed([](Schedule* s) { s->operations.pop_back(); }));
  EXPECT_TRUE(changed([](Schedule* s) { s->rank = 1; }));
}

}  // namespace
}  // namespace bitrail::schedule
