// Silent peers: whoever waits asks after them, learns when they are gone, and bears with those that
// are only slow.
#define TEST_OVER_VERBS 1
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Request;

Way way_of(int64_t keepalive_ms) {
  Way way{"verbs", "", 0, 0};
  way.ib.hca = "=mlx5_0";
  way.ib.keepalive_ms = keepalive_ms;
  return way;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A receive that waits at each side.
struct Waiting {
  explicit Waiting(Pair* pair) {
    for (int i = 0; i < 2; i++) {
      receive(pair->sides[i].receiver.get(), got[i].data(), got[i].size(), 1, &requests[i]);
    }
  }
  bool done() const { return requests[0].done && requests[1].done; }
  std::vector<uint8_t> got[2] = {std::vector<uint8_t>(50'000), std::vector<uint8_t>(50'000)};
  Request requests[2];
};

// The peers' ports go without a word.
void vanish(Pair* pair) {
  pair->world.fake().set_retry_ns(2'000'000);
  pair->world.fake().set_state("mlx5_0", 1, IBV_PORT_DOWN, false);
}

void expect_lost(const Request& request) {
  EXPECT_EQ(request.status, BITRAIL_ERR_PEER_LOST);
  for (const char* part : {"rank ", "127.0.0.1", "retry"}) {
    EXPECT_TRUE(contains(request.text, part)) << request.text;
  }
}

TEST(KeepAlive, ReceiversLearnThatTheirPeerIsGone) {
  Pair pair(way_of(1));
  Waiting waiting(&pair);
  vanish(&pair);
  ASSERT_TRUE(pair.pump([&] { return waiting.done(); }));
  for (const Request& request : waiting.requests) expect_lost(request);
}

// As the engine waits: it calls when the timer says so.
TEST(KeepAlive, AsksWhenItsTimerSaysSo) {
  Pair pair(way_of(1));
  Waiting waiting(&pair);
  vanish(&pair);
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  while (!waiting.done() && !deadline.passed()) {
    for (int i = 0; i < 2; i++) {
      transport::Context& context = *pair.sides[i].context;
      bool idle = false;
      ASSERT_TRUE(context.arm(&idle).ok());
      if (idle && !waiting.requests[i].done) {
        ASSERT_NE(context.next_timer_ns(), INT64_MAX);
      }
      context.progress();
    }
  }
  ASSERT_TRUE(waiting.done());
  for (const Request& request : waiting.requests) expect_lost(request);
}

// Announced, acknowledged by the peer's device, and then nothing.
TEST(KeepAlive, SendersThatWaitForAReceiveLearnOfIt) {
  Pair pair(way_of(1));
  const std::vector<uint8_t> data = pattern(100'000, 1);
  Request sending;
  send(pair.a().sender.get(), data.data(), data.size(), 2, 0, &sending);
  ASSERT_TRUE(pair.pump([&] { return !pair.b().receiver->unexpected().empty(); }));
  vanish(&pair);
  ASSERT_TRUE(pair.pump([&] { return sending.done; }));
  expect_lost(sending);
}

TEST(KeepAlive, NobodyAsksWithoutAReason) {
  for (const int64_t period : {0, 1}) {
    Pair pair(way_of(period));
    std::unique_ptr<Waiting> waiting;
    if (period == 0) waiting = std::make_unique<Waiting>(&pair);
    pair.pump([rounds = 0]() mutable { return ++rounds > 5000; });
    const uint64_t before = pair.world.fake().counters().delivered;
    const Deadline while_silent = Deadline::in_ms(30);
    pair.pump([&] { return while_silent.passed(); });
    EXPECT_EQ(pair.world.fake().counters().delivered, before);
    for (Side& side : pair.sides) side.receiver.reset();  // before what they would fill
  }
}

// The peer does not poll for a long time: its device answers, and runs out of receives in the end.
TEST(KeepAlive, ThePeerThatIsOnlySlowIsNotGivenUp) {
  Pair pair(way_of(1));
  pair.world.fake().set_retry_ns(-1);
  Waiting waiting(&pair);
  const uint64_t before = pair.world.fake().counters().delivered;
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  while (pair.world.fake().counters().waits_for_receive == 0 && !deadline.passed()) {
    pair.a().context->progress();
  }
  EXPECT_GT(pair.world.fake().counters().delivered, before + 10);
  EXPECT_FALSE(waiting.requests[0].done) << waiting.requests[0].text;
  const std::vector<uint8_t> data = pattern(40'000, 3);
  Request sends[2];
  for (int i = 0; i < 2; i++) {
    send(pair.sides[i].sender.get(), data.data(), data.size(), 1, 0, &sends[i]);
  }
  ASSERT_TRUE(pair.pump([&] { return waiting.done() && sends[0].done && sends[1].done; }));
  for (int i = 0; i < 2; i++) {
    EXPECT_EQ(waiting.requests[i].status, BITRAIL_OK) << waiting.requests[i].text;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), waiting.got[i].begin()));
  }
}

}  // namespace
}  // namespace bitrail::test
