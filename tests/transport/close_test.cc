// Ends: closing with requests outstanding, in any order, without losing what was accepted and
// without anything being written afterwards; ranks that have nothing left to do.
#include <atomic>
#include <thread>

#include "runtime/common/clock.h"
#include "tests/support/spawn.h"
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Request;

class Close : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Transports, Close, testing::ValuesIn(ways()), way_name);

TEST_P(Close, ReceiverEndsItsReceivesAndNothingIsWrittenLater) {
  Pair pair(GetParam());
  for (const size_t bytes : {size_t{8}, size_t{30'000}, size_t{5'000'000}}) {
    const std::vector<uint8_t> data = pattern(bytes, 1);
    std::vector<uint8_t> got(bytes, 0xaa), before;
    Request receiving, sending;
    receive(pair.b().receiver.get(), got.data(), bytes, 1, &receiving);
    send(pair.a().sender.get(), data.data(), bytes, 1, 0, &sending);
    for (int i = 0; i < 3; i++) {  // the message may be on its way, arrived, or half way
      pair.b().context->progress();
      pair.a().context->progress();
    }
    pair.b().receiver.reset();
    ASSERT_TRUE(receiving.done);
    if (receiving.status != BITRAIL_OK) {
      EXPECT_EQ(receiving.status, BITRAIL_ERR_ABORTED) << receiving.text;
    }
    before = got;
    ASSERT_TRUE(pair.pump([&] { return sending.done; }));
    for (int i = 0; i < 1000; i++) {
      pair.a().context->progress();
      pair.b().context->progress();
    }
    EXPECT_EQ(got, before);
    pair.a().sender.reset();
    pair.a().receiver.reset();
    pair.b().sender.reset();
    pair.connect();
  }
}

TEST_P(Close, ContextEndsEverythingAndTheRestMayGoLater) {
  Pair pair(GetParam());
  std::vector<uint8_t> data = pattern(2'000'000, 1), got(8);
  int told = 0;
  Request receiving, small, sending;
  for (Request* request : {&receiving, &small, &sending}) {
    request->user = &told;
    request->on_done = [](Request* self) { ++*static_cast<int*>(self->user); };
  }
  receive(pair.a().receiver.get(), got.data(), got.size(), 1, &receiving);
  send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &sending);  // nobody receives it
  const int64_t start = now_ns();
  pair.a().context.reset();
  EXPECT_LT(now_ns() - start, 20'000'000'000);
  EXPECT_TRUE(receiving.done && sending.done);
  EXPECT_EQ(told, 2);
  EXPECT_EQ(receiving.status, BITRAIL_ERR_ABORTED) << receiving.text;
  EXPECT_EQ(sending.status, BITRAIL_ERR_ABORTED) << sending.text;
  bool accepted = true;
  EXPECT_FALSE(pair.a().sender->isend(data.data(), 8, 1, 0, nullptr, &small, &accepted).ok());
  EXPECT_FALSE(accepted);
  pair.a().sender.reset();
  pair.a().receiver.reset();
  pair.a().listener.reset();
}

TEST_P(Close, LosesNothingThatWasAccepted) {
  constexpr int kCount = 100;
  Pair pair(GetParam());
  const std::vector<uint8_t> data = pattern(12'000, 4);
  std::vector<std::vector<uint8_t>> got(kCount, std::vector<uint8_t>(data.size()));
  std::vector<Request> receives(kCount);
  std::thread sender([&] {
    std::vector<Request> sends(kCount);
    for (Request& request : sends) {
      send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &request);
    }
    pair.a().sender.reset();
    pair.a().context.reset();
    for (const Request& request : sends) EXPECT_TRUE(request.done);
  });
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  for (int i = 0; i < kCount; i++) {
    receive(pair.b().receiver.get(), got[i].data(), data.size(), 1, &receives[i]);
    while (!receives[i].done) {
      ASSERT_FALSE(deadline.passed()) << i;
      pair.b().context->progress();
    }
    ASSERT_EQ(receives[i].status, BITRAIL_OK) << receives[i].text;
    ASSERT_EQ(got[i], data);
  }
  sender.join();
}

// Four ranks; each has sent its long messages and has nothing left to do, but goes on progressing,
// without which the others' rendezvous would hang. The receives come late and one by one.
TEST_P(Close, IdleRanksKeepOthersGoing) {
  constexpr int kRanks = 4;
  const size_t bytes = 600'000;
  const World world;
  std::vector<Side> sides(kRanks);
  struct Link {
    std::unique_ptr<transport::Context::Connecting> pending;
    std::unique_ptr<transport::Sender> sender;
    std::unique_ptr<transport::Receiver> receiver;
  };
  std::vector<std::vector<Link>> links(kRanks);
  for (int rank = 0; rank < kRanks; rank++) {
    const TlsChoice choice(GetParam().ucx_tls);
    transport::Options options = options_for(GetParam(), rank);
    options.world_size = kRanks;
    ASSERT_TRUE(transport::open(kTransport, options, &sides[rank].context).ok());
    ASSERT_TRUE(sides[rank].context->listen(0, &sides[rank].handle, &sides[rank].listener).ok());
    links[rank].resize(kRanks);
  }
  std::atomic<int> finished{0};
  spawn(kRanks, [&](int rank) {
    transport::Context* context = sides[rank].context.get();
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    int left = 2 * (kRanks - 1);
    while (left > 0) {
      ASSERT_FALSE(deadline.passed());
      for (int peer = 0; peer < kRanks; peer++) {
        Link& link = links[rank][peer];
        if (peer == rank || link.sender != nullptr) continue;
        const Status status =
            context->connect(0, sides[peer].handle, {peer}, deadline, &link.pending, &link.sender);
        ASSERT_TRUE(status.ok()) << status.text();
        if (link.sender != nullptr) left--;
      }
      std::unique_ptr<transport::Receiver> receiver;
      transport::Peer who;
      ASSERT_TRUE(sides[rank].listener->accept(&receiver, &who).ok());
      if (receiver != nullptr) {
        links[rank][who.rank].receiver = std::move(receiver);
        left--;
      }
      context->progress();
    }
    const std::vector<uint8_t> data = pattern(bytes, static_cast<uint64_t>(rank));
    std::vector<Request> sends(kRanks);
    for (int peer = 0; peer < kRanks; peer++) {
      if (peer == rank) continue;
      send(links[rank][peer].sender.get(), data.data(), bytes, 1, 0, &sends[peer]);
    }
    std::vector<uint8_t> got(bytes);
    for (int step = 1; step < kRanks; step++) {
      const int from = (rank + step) % kRanks;
      std::this_thread::sleep_for(std::chrono::milliseconds(2 * rank));
      Request receiving;
      receive(links[rank][from].receiver.get(), got.data(), bytes, 1, &receiving);
      while (!receiving.done) {
        ASSERT_FALSE(deadline.passed()) << "rank " << rank << " waits for rank " << from;
        context->progress();
        std::this_thread::yield();
      }
      EXPECT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
      EXPECT_EQ(got, pattern(bytes, static_cast<uint64_t>(from)));
    }
    finished++;
    while (finished < kRanks && !deadline.passed()) {
      context->progress();
      std::this_thread::yield();
    }
    links[rank].clear();
    sides[rank].context.reset();
  });
  EXPECT_EQ(finished, kRanks);
}

}  // namespace
}  // namespace bitrail::test
