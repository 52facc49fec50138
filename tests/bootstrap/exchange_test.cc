// Starts where the launcher gathers: no address and no secret is given.
#include "runtime/bootstrap/exchange.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstring>

#include "tests/bootstrap/join.h"

namespace bitrail::bootstrap {
namespace {

constexpr int kTimeoutMs = 30'000;

// An all-gather among threads, as a caller's callback would be.
class Board {
 public:
  explicit Board(int size) : barrier_(size), entries_(static_cast<size_t>(size)) {}

  World world(int rank) {
    World world = test::world_of(rank, static_cast<int>(entries_.size()), "");
    world.secret.clear();
    world.exchange = [this, rank](const void* mine, size_t bytes, void* all) {
      const auto* from = static_cast<const uint8_t*>(mine);
      entries_[static_cast<size_t>(rank)].assign(from, from + bytes);
      barrier_.arrive_and_wait();
      for (size_t r = 0; r < entries_.size(); r++) {
        std::memcpy(static_cast<uint8_t*>(all) + r * bytes, entries_[r].data(), bytes);
      }
      barrier_.arrive_and_wait();
      return Status();
    };
    return world;
  }

 private:
  std::barrier<> barrier_;
  std::vector<std::vector<uint8_t>> entries_;
};

std::vector<World> worlds_of(Board* board, int size) {
  std::vector<World> worlds;
  for (int rank = 0; rank < size; rank++) worlds.push_back(board->world(rank));
  return worlds;
}

void expect_all(const std::vector<Status>& results, bitrail_status_t code) {
  for (size_t i = 0; i < results.size(); i++) {
    EXPECT_EQ(results[i].code(), code) << "process " << i << ": " << results[i].text();
  }
}

TEST(Exchange, BringsAddressAndARandomSecret) {
  Board board(11);
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(test::join_all(worlds_of(&board, 11), kTimeoutMs, &ranks), BITRAIL_OK);
  for (const auto& rank : ranks) {
    ASSERT_TRUE(rank);
    EXPECT_EQ(rank->secret().size(), 64u);
    EXPECT_EQ(rank->secret(), ranks[0]->secret());
  }
}

TEST(Exchange, GivenSecretIsKeptAndProven) {
  Board board(3);
  std::vector<World> worlds = worlds_of(&board, 3);
  for (World& world : worlds) world.secret = "given";
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(test::join_all(worlds, kTimeoutMs, &ranks), BITRAIL_OK);
  for (const auto& rank : ranks) EXPECT_EQ(rank->secret(), "given");
}

TEST(Exchange, SecretAtSomeRanksOnlyIsMissingForAll) {
  for (const size_t who : {0, 2}) {
    Board board(3);
    std::vector<World> worlds = worlds_of(&board, 3);
    worlds[who].secret = "given";
    std::vector<std::unique_ptr<Bootstrap>> ranks;
    expect_all(test::join_all(worlds, kTimeoutMs, &ranks), BITRAIL_ERR_SECRET_MISSING);
  }
}

TEST(Exchange, DisagreementsAreTheSameErrorForAll) {
  Board twice(3);
  std::vector<World> worlds = worlds_of(&twice, 3);
  worlds[2].rank = 1;
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(test::join_all(worlds, kTimeoutMs, &ranks), BITRAIL_ERR_RANK_TAKEN);
}

TEST(Exchange, RankZeroThatCannotListenTellsAll) {
  Board board(3);
  std::vector<World> worlds = worlds_of(&board, 3);
  worlds[0].rendezvous = "203.0.113.1:4000";  // an address for documentation: nobody has it
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(test::join_all(worlds, kTimeoutMs, &ranks), BITRAIL_ERR_SYSTEM);
}

TEST(Exchange, EntriesSurviveTheirEncoding) {
  Entry entry{4, 9, true, "10.0.0.1:5,[fd00::1]:5", "abc", BITRAIL_ERR_SYSTEM, "no"};
  const std::vector<uint8_t> bytes = encode(entry);
  ASSERT_EQ(bytes.size(), kEntryBytes);
  Entry back;
  ASSERT_TRUE(decode(bytes, &back));
  EXPECT_EQ(back.rank, 4);
  EXPECT_EQ(back.size, 9);
  EXPECT_TRUE(back.has_secret);
  EXPECT_EQ(back.addresses, entry.addresses);
  EXPECT_EQ(back.secret, "abc");
  EXPECT_EQ(back.code, BITRAIL_ERR_SYSTEM);
  EXPECT_EQ(back.text, "no");
  EXPECT_FALSE(decode(std::vector<uint8_t>(kEntryBytes), &back));
  EXPECT_FALSE(decode(std::span(bytes).first(100), &back));
}

}  // namespace
}  // namespace bitrail::bootstrap
