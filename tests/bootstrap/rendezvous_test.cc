// Who may join, and what both sides hear otherwise.
#include "runtime/bootstrap/rendezvous.h"

#include <gtest/gtest.h>

#include "tests/bootstrap/join.h"

namespace bitrail::bootstrap {
namespace {

using test::free_rendezvous;
using test::join_all;
using test::world_of;

constexpr int kLongMs = 30'000;
constexpr int kShortMs = 1'000;  // for starts that have to run into it

std::vector<World> worlds_of(int size) {
  std::vector<World> worlds;
  const std::string rendezvous = free_rendezvous();
  for (int rank = 0; rank < size; rank++) worlds.push_back(world_of(rank, size, rendezvous));
  return worlds;
}

void expect_all(const std::vector<Status>& results, bitrail_status_t code) {
  for (size_t i = 0; i < results.size(); i++) {
    EXPECT_EQ(results[i].code(), code) << "process " << i << ": " << results[i].text();
  }
}

TEST(Rendezvous, WrongSecretIsToldToAll) {
  std::vector<World> worlds = worlds_of(3);
  worlds[2].secret = "another";
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(join_all(worlds, kShortMs, &ranks), BITRAIL_ERR_SECRET_WRONG);
}

TEST(Rendezvous, MissingSecretIsToldToAll) {
  for (const size_t who : {0, 1}) {
    std::vector<World> worlds = worlds_of(2);
    worlds[who].secret.clear();
    std::vector<std::unique_ptr<Bootstrap>> ranks;
    const std::vector<Status> results = join_all(worlds, kShortMs, &ranks);
    expect_all(results, BITRAIL_ERR_SECRET_MISSING);
    EXPECT_NE(results[0].text().find("BITRAIL_SECRET"), std::string::npos);
  }
}

TEST(Rendezvous, OtherJobIsToldToAll) {
  std::vector<World> worlds = worlds_of(3);
  worlds[1].job_id = "another";
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(join_all(worlds, kShortMs, &ranks), BITRAIL_ERR_JOB_ID);
}

TEST(Rendezvous, RankTakenTwiceFailsAllAtOnce) {
  std::vector<World> worlds = worlds_of(3);
  worlds[2].rank = 1;
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  const std::vector<Status> results = join_all(worlds, kLongMs, &ranks);
  expect_all(results, BITRAIL_ERR_RANK_TAKEN);
  EXPECT_NE(results[0].text().find("rank 1"), std::string::npos);
}

TEST(Rendezvous, RankZeroTakenTwiceFailsAllAtOnce) {
  std::vector<World> worlds = worlds_of(3);
  worlds[2].rank = 0;
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  expect_all(join_all(worlds, kLongMs, &ranks), BITRAIL_ERR_RANK_TAKEN);
}

TEST(Rendezvous, DisagreeingWorldSizesFailAllAtOnce) {
  for (const int other : {2, 4}) {
    std::vector<World> worlds = worlds_of(3);
    worlds[1].size = other;
    std::vector<std::unique_ptr<Bootstrap>> ranks;
    expect_all(join_all(worlds, kLongMs, &ranks), BITRAIL_ERR_WORLD_SIZE);
  }
}

TEST(Rendezvous, MissingRanksAreNamedAtTheDeadline) {
  std::vector<World> worlds = worlds_of(4);
  worlds.pop_back();
  std::vector<std::unique_ptr<Bootstrap>> ranks;
  const std::vector<Status> results = join_all(worlds, kShortMs, &ranks);
  expect_all(results, BITRAIL_ERR_TIMEOUT);
  for (const Status& status : results) {
    EXPECT_NE(status.text().find("rank(s) 3 of 4"), std::string::npos) << status.text();
  }
}

TEST(Rendezvous, NobodyAtRankZeroIsATimeoutNamingTheAddress) {
  const World world = world_of(1, 2, free_rendezvous());
  std::unique_ptr<Bootstrap> bootstrap;
  const Status status = test::join(world, 300, &bootstrap);
  EXPECT_EQ(status.code(), BITRAIL_ERR_TIMEOUT);
  EXPECT_NE(status.text().find(world.rendezvous), std::string::npos) << status.text();
}

TEST(Rendezvous, RankZeroMayComeLate) {
  const std::vector<World> worlds = worlds_of(3);
  std::vector<Status> results(3);
  bitrail::test::spawn(3, [&](int rank) {
    std::unique_ptr<Bootstrap> bootstrap;
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    results[static_cast<size_t>(rank)] =
        test::join(worlds[static_cast<size_t>(rank)], kLongMs, &bootstrap);
  });
  expect_all(results, BITRAIL_OK);
}

// One that knows nothing, one that sends garbage, one that just holds its connection, one that
// leaves at once: none of them stops the ranks.
TEST(Rendezvous, IntrudersDoNotStopAHealthyJob) {
  const std::vector<World> worlds = worlds_of(3);
  std::string host;
  uint16_t port = 0;
  std::vector<Address> addresses;
  ASSERT_TRUE(split_host_port(worlds[0].rendezvous, "", &host, &port).ok());
  ASSERT_TRUE(resolve(host, port, Deadline::in_ms(1000), &addresses).ok());
  std::vector<Status> results(3);
  Status intruder;
  bitrail::test::spawn(4, [&](int i) {
    std::unique_ptr<Bootstrap> bootstrap;
    if (i < 3) {
      // The intruders come first.
      if (i != 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
      results[static_cast<size_t>(i)] =
          test::join(worlds[static_cast<size_t>(i)], kLongMs, &bootstrap);
      return;
    }
    UniqueFd garbage, silent, gone;
    const Deadline deadline = Deadline::in_ms(kLongMs);
    while (!connect_to(addresses[0], deadline, &garbage).ok() && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_TRUE(connect_to(addresses[0], deadline, &silent).ok());
    EXPECT_TRUE(connect_to(addresses[0], deadline, &gone).ok());
    gone.reset();
    const std::string bytes(4096, '\xa5');
    EXPECT_GT(send(garbage.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), 0);
    World stranger = worlds[1];
    stranger.secret = "a guess";
    intruder = test::join(stranger, kLongMs, &bootstrap);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // `silent` stays
  });
  expect_all(results, BITRAIL_OK);
  EXPECT_EQ(intruder.code(), BITRAIL_ERR_SECRET_WRONG);
}

TEST(Rendezvous, AnotherProgramAtTheAddressIsAProtocolError) {
  World world = world_of(1, 2, free_rendezvous());
  std::string host;
  uint16_t port = 0;
  std::vector<Address> addresses;
  ASSERT_TRUE(split_host_port(world.rendezvous, "", &host, &port).ok());
  ASSERT_TRUE(resolve(host, port, Deadline::in_ms(1000), &addresses).ok());
  UniqueFd listener;
  bool in_use = false;
  ASSERT_TRUE(listen_at(addresses[0], &listener, &in_use).ok());
  Status status;
  bitrail::test::spawn(2, [&](int i) {
    std::unique_ptr<Bootstrap> bootstrap;
    if (i == 0) {
      status = test::join(world, kLongMs, &bootstrap);
      return;
    }
    UniqueFd socket;
    const Deadline deadline = Deadline::in_ms(kLongMs);
    while (!socket && !deadline.passed()) EXPECT_TRUE(accept_from(listener.get(), &socket).ok());
    const std::string greeting = "220 mail.example.org ESMTP\r\n";
    EXPECT_GT(send(socket.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  EXPECT_EQ(status.code(), BITRAIL_ERR_PROTOCOL) << status.text();
}

// One communicator after the other at the same address, without a pause between.
TEST(Rendezvous, TheSameAddressServesAgain) {
  const std::vector<World> worlds = worlds_of(12);
  std::vector<Status> results(12);
  bitrail::test::spawn(12, [&](int rank) {
    for (int round = 0; round < 5 && results[static_cast<size_t>(rank)].ok(); round++) {
      std::unique_ptr<Bootstrap> bootstrap;
      results[static_cast<size_t>(rank)] =
          test::join(worlds[static_cast<size_t>(rank)], kLongMs, &bootstrap);
    }
  });
  expect_all(results, BITRAIL_OK);
}

}  // namespace
}  // namespace bitrail::bootstrap
