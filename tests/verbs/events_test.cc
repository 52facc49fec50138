// What devices tell on their own reaches the ports' flags and wakes the context.
#include "runtime/transport/verbs/events.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "runtime/trace/log.h"
#include "tests/support/entries.h"
#include "tests/verbs/queue_pairs.h"

namespace bitrail::transport::verbs {
namespace {

using Ports = std::vector<std::shared_ptr<Port>>;

// Flags are set by another thread.
template <typename Condition>
bool soon(Condition condition) {
  const Deadline deadline = Deadline::in_ms(10'000);
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

class Events : public testing::Test {
 protected:
  // With the first thread a sanitizer may start one of its own, which stays.
  static void SetUpTestSuite() {
    const long alone = test::entries(test::kThreads);
    std::thread([] {}).join();
    (void)test::entries_left(test::kThreads, alone);
  }
  Events() : before(test::entries(test::kThreads)) {
    fake.add_device(test::fake_device("mlx5_0"));
    test::FakeDevice two = test::fake_device("mlx5_1");
    two.ports.resize(2);
    fake.add_device(two);
    std::string why;
    EXPECT_TRUE(open_ports({}, &ports, &why).ok());
    wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    const Status status = watch_events(ports, wake, &watch);
    EXPECT_TRUE(status.ok()) << status.text();
  }
  ~Events() override {
    watch.reset();
    EXPECT_LE(test::entries_left(test::kThreads, before), before);
    close(wake);
    ports.clear();
    EXPECT_TRUE(fake.counters().clean());
  }
  bool woken() const {
    pollfd entry{wake, POLLIN, 0};
    uint64_t count = 0;
    return poll(&entry, 1, 10'000) == 1 && read(wake, &count, sizeof(count)) == sizeof(count);
  }

  test::FakeVerbs fake;
  long before;
  Ports ports;
  int wake = -1;
  std::unique_ptr<EventWatch> watch;
};

TEST_F(Events, PortGoesDownAndComesBack) {
  fake.set_state("mlx5_1", 2, IBV_PORT_DOWN);
  EXPECT_TRUE(woken());
  EXPECT_TRUE(ports[2]->down);
  EXPECT_FALSE(ports[0]->down);
  EXPECT_FALSE(ports[1]->down);  // the other port of the card
  EXPECT_FALSE(refresh_port({}, ports[2].get()).ok());
  fake.set_state("mlx5_1", 2, IBV_PORT_ACTIVE);
  EXPECT_TRUE(soon([&] { return !ports[2]->down; }));
  EXPECT_TRUE(ports[2]->gid_changed);
  EXPECT_TRUE(refresh_port({}, ports[2].get()).ok());
}

TEST_F(Events, GidChangeIsReadAgain) {
  fake.set_gids("mlx5_0", 1, {test::fake_gid("10.8.8.8")});
  EXPECT_TRUE(woken());
  EXPECT_TRUE(ports[0]->gid_changed);
  EXPECT_FALSE(ports[1]->gid_changed);
  ASSERT_TRUE(refresh_port({}, ports[0].get()).ok());
  EXPECT_EQ(gid_text(ports[0]->gid), "10.8.8.8");
}

TEST_F(Events, RemovedStaysRemoved) {
  fake.remove_device("mlx5_0");
  EXPECT_TRUE(woken());
  EXPECT_TRUE(ports[0]->removed);
  EXPECT_FALSE(ports[1]->removed);
  fake.inject("mlx5_0", IBV_EVENT_PORT_ACTIVE);
  fake.inject("mlx5_1", IBV_EVENT_PORT_ERR, 1);
  EXPECT_TRUE(soon([&] { return ports[1]->down.load(); }));
  EXPECT_TRUE(ports[0]->removed);
  EXPECT_FALSE(refresh_port({}, ports[0].get()).ok());
}

TEST_F(Events, FatalOnesOfQueuePairsCountAndAreAcknowledged) {
  ibv_cq* cq = test::verbs().create_cq(ports[0]->context, 4, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.qp_type = IBV_QPT_RC;
  init.cap = {1, 1, 1, 1, 0};
  ibv_qp* qp = test::verbs().create_qp(ports[0]->pd, &init);
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(test::verbs().modify_qp(
                qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  fake.fail_qp(qp->qp_num);
  EXPECT_TRUE(woken());
  EXPECT_EQ(ports[0]->fatal_events, 1U);
  EXPECT_EQ(ports[1]->fatal_events, 0U);
  EXPECT_EQ(test::verbs().destroy_qp(qp), 0);
  EXPECT_EQ(test::verbs().destroy_cq(cq), 0);
}

TEST_F(Events, OneThreadForAllAndNoneAtTheEnd) {
  EXPECT_EQ(test::entries(test::kThreads), before + 1);
  Ports others;
  std::string why;
  ASSERT_TRUE(open_ports({}, &others, &why).ok());
  const int other_wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  std::unique_ptr<EventWatch> other;
  ASSERT_TRUE(watch_events(others, other_wake, &other).ok());
  EXPECT_EQ(test::entries(test::kThreads), before + 1);
  fake.set_state("mlx5_0", 1, IBV_PORT_DOWN);
  EXPECT_TRUE(woken());
  EXPECT_TRUE(soon([&] { return others[0]->down.load(); }));
  watch.reset();
  EXPECT_EQ(test::entries(test::kThreads), before + 1);
  fake.set_state("mlx5_0", 1, IBV_PORT_ACTIVE);
  EXPECT_TRUE(soon([&] { return !others[0]->down; }));
  EXPECT_TRUE(ports[0]->down);  // nobody watches it
  other.reset();
  EXPECT_LE(test::entries_left(test::kThreads, before), before);
  others.clear();
  close(other_wake);
  // And again.
  ASSERT_TRUE(watch_events(ports, wake, &watch).ok());
  EXPECT_TRUE(soon([&] { return !ports[0]->down; }));
}

TEST_F(Events, SurviveWatchesThatComeAndGo) {
  log::set_level(log::Level::none);
  std::atomic<bool> stop{false};
  std::thread storm([&] {
    for (int i = 0; !stop; i++) {
      fake.inject("mlx5_0", i % 2 == 0 ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> users;
  users.reserve(3);
  for (int t = 0; t < 3; t++) {
    users.emplace_back([] {
      for (int i = 0; i < 30; i++) {
        Ports mine;
        std::string why;
        EXPECT_TRUE(open_ports({}, &mine, &why).ok());
        const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        std::unique_ptr<EventWatch> watching;
        EXPECT_TRUE(watch_events(mine, fd, &watching).ok());
        watching.reset();
        close(fd);
      }
    });
  }
  for (std::thread& user : users) user.join();
  stop = true;
  storm.join();
  log::set_level(log::Level::warn);
}

}  // namespace
}  // namespace bitrail::transport::verbs
