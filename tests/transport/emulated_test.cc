// The link model by itself (its time is virtual, so nothing is measured here), the segment that
// ranks share, and the decorator's choices. That its times agree with shaped links is shown in
// tests/lab.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "runtime/common/clock.h"
#include "runtime/transport/emulated/cards.h"
#include "runtime/transport/emulated/link.h"
#include "tests/transport/pair.h"

namespace bitrail::transport::emulated {
namespace {

// 8 Mbit/s: a byte a microsecond.
const Shape kShape = make_shape(8, 100);
constexpr int64_t kUs = 1000;

// The time at which `count` quanta of 1,000 bytes, sent back to back, have arrived.
int64_t transfer(Card* from, Card* to, int count, int64_t queued) {
  int64_t now = queued, delivered = 0;
  for (int i = 0; i < count;) {
    int64_t when = 0;
    if (reserve(kShape, from, to, 1000, queued, now, &when)) {
      delivered = when;
      i++;
    } else {
      now = when;
    }
  }
  return delivered;
}

TEST(Link, RateAndDelay) {
  Card a, b;
  EXPECT_EQ(transfer(&a, &b, 1, 0), 1000 * kUs + 100 * kUs);
  Card c, d;
  EXPECT_EQ(transfer(&c, &d, 50, 0), 50'000 * kUs + 100 * kUs);
}

TEST(Link, LookingLateCostsNothing) {
  Card a, b;
  int64_t when = 0;
  for (int i = 0; i < 10; i++) {
    ASSERT_TRUE(reserve(kShape, &a, &b, 1000, 0, 1'000'000 * kUs, &when));
  }
  EXPECT_EQ(when, 10'000 * kUs + 100 * kUs);
}

TEST(Link, SendersShareTheReceiversCard) {
  Card senders[3], receiver;
  int64_t last = 0;
  for (int i = 0; i < 10; i++) {
    for (Card& sender : senders) {
      int64_t when = 0;
      ASSERT_TRUE(reserve(kShape, &sender, &receiver, 1000, 0, 1'000'000 * kUs, &when));
      last = std::max(last, when);
    }
  }
  EXPECT_EQ(last, 30'000 * kUs + 100 * kUs);
}

TEST(Link, PeersShareTheSendersCard) {
  Card sender, receivers[3];
  int64_t when = 0;
  for (int i = 0; i < 10; i++) {
    for (Card& receiver : receivers) {
      ASSERT_TRUE(reserve(kShape, &sender, &receiver, 1000, 0, 1'000'000 * kUs, &when));
    }
  }
  EXPECT_EQ(when, 30'000 * kUs + 100 * kUs);
}

TEST(Link, DirectionsAreIndependent) {
  Card a, b;
  EXPECT_EQ(transfer(&a, &b, 10, 0), 10'100 * kUs);
  EXPECT_EQ(transfer(&b, &a, 10, 0), 10'100 * kUs);
}

TEST(Link, BusyCardSaysUntilWhen) {
  Card a, b;
  int64_t when = 0;
  ASSERT_TRUE(reserve(kShape, &a, &b, 1000, 5 * kUs, 5 * kUs, &when));
  EXPECT_FALSE(reserve(kShape, &a, &b, 1000, 6 * kUs, 6 * kUs, &when));
  EXPECT_EQ(when, 1005 * kUs);
}

TEST(Link, CountsFraming) {
  EXPECT_EQ(wire_bytes(0, true), 40U + 66U);
  EXPECT_EQ(wire_bytes(1448, false), 1514U);
  EXPECT_EQ(wire_bytes(1449, false), 1449U + 2 * 66U);
}

bool exists(const std::string& name) {
  const int fd = shm_open(name.c_str(), O_RDONLY, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

TEST(Cards, AreSharedByTheJobAndRemovedByTheLast) {
  const std::string job = "cards " + std::to_string(getpid());
  std::unique_ptr<Cards> first, second, other;
  ASSERT_TRUE(Cards::open(job, "s", 4, 4, &first).ok());
  ASSERT_TRUE(Cards::open(job, "s", 4, 4, &second).ok());
  ASSERT_TRUE(Cards::open(job, "another", 4, 4, &other).ok());
  EXPECT_EQ(first->name(), second->name());
  EXPECT_NE(first->name(), other->name());
  first->node(3)->tx_next_ns = 17;
  EXPECT_EQ(second->node(3)->tx_next_ns, 17);
  EXPECT_EQ(other->node(3)->tx_next_ns, 0);
  const std::string name = first->name();
  first.reset();
  EXPECT_TRUE(exists(name));
  second.reset();
  EXPECT_FALSE(exists(name));
}

TEST(Cards, AKilledUserIsForgotten) {
  const std::string job = "killed " + std::to_string(getpid());
  std::unique_ptr<Cards> mine;
  ASSERT_TRUE(Cards::open(job, "s", 2, 2, &mine).ok());
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<Cards> its;
    _exit(Cards::open(job, "s", 2, 2, &its).ok() && its->name() == mine->name() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);  // left by _exit: its seat was never given back
  const std::string name = mine->name();
  mine.reset();
  EXPECT_FALSE(exists(name));
}

TEST(Decorator, NamesItselfAndChecksItsOptions) {
  test::Way way{"emulated", "", 100, 50};
  transport::Options options = test::options_for(way, 1);
  std::unique_ptr<Context> context;
  ASSERT_TRUE(transport::open("ucx", options, &context).ok());
  EXPECT_STREQ(context->name(), "ucx+emulated");
  EXPECT_EQ(context->device(0).speed_mbps, 100);
  context.reset();
  options.identity.rank = 2;  // of 2
  EXPECT_EQ(transport::open("ucx", options, &context).code(), BITRAIL_ERR_CONFIG);
  options = test::options_for(way, 0);
  options.link_mbps = -1;
  EXPECT_EQ(transport::open("ucx", options, &context).code(), BITRAIL_ERR_CONFIG);
}

// At this rate a message of 100 kB takes 10 s between nodes and nothing inside one.
TEST(Decorator, InsideANodeNothingIsShaped) {
  const test::Way way{"emulated", "", 0.08, 0};
  transport::Options options[2] = {test::options_for(way, 0), test::options_for(way, 1)};
  std::unique_ptr<Context> contexts[2];
  Handle handle;
  std::unique_ptr<Listener> listener;
  for (int i = 0; i < 2; i++) {
    options[i].ranks_per_node = 2;
    ASSERT_TRUE(transport::open("ucx", options[i], &contexts[i]).ok());
  }
  ASSERT_TRUE(contexts[1]->listen(0, &handle, &listener).ok());
  std::unique_ptr<Context::Connecting> pending;
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
  Peer peer;
  const Deadline deadline = Deadline::in_ms(test::kPatienceMs);
  while (sender == nullptr || receiver == nullptr) {
    ASSERT_FALSE(deadline.passed());
    if (sender == nullptr) {
      ASSERT_TRUE(contexts[0]->connect(0, handle, {1}, deadline, &pending, &sender).ok());
    }
    if (receiver == nullptr) {
      ASSERT_TRUE(listener->accept(&receiver, &peer).ok());
    }
  }
  std::vector<uint8_t> data(100'000), got(100'000);
  Request sending, receiving;
  test::send(sender.get(), data.data(), data.size(), 1, 0, &sending);
  test::receive(receiver.get(), got.data(), got.size(), 1, &receiving);
  EXPECT_EQ(contexts[0]->next_timer_ns(), INT64_MAX);
  while (!receiving.done) {
    ASSERT_FALSE(deadline.passed());
    contexts[0]->progress();
    contexts[1]->progress();
  }
}

}  // namespace
}  // namespace bitrail::transport::emulated
