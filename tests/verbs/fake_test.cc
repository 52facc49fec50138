// The fake behaves as hardware does where the transport relies on it, and refuses what hardware
// refuses.
#include <poll.h>

#include <cerrno>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/verbs/queue_pairs.h"

namespace bitrail::test {
namespace {

class Fake : public testing::Test {
 protected:
  Fake() {
    fake.add_device(fake_device("mlx5_0"));
    fake.add_device(fake_device("mlx5_1"));
  }
  ~Fake() override {
    FakeCounters counters = fake.counters();
    counters.overruns -= overruns;
    counters.stuck -= stuck;
    EXPECT_TRUE(counters.clean());
  }

  FakeVerbs fake;
  uint64_t overruns = 0, stuck = 0;  // that the test provokes
};

void fill(std::vector<uint8_t>* bytes) { std::iota(bytes->begin(), bytes->end(), uint8_t{1}); }

TEST_F(Fake, CarriesWritesSendsAndReads) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  fill(&a.bytes);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 1, b, 100, 5000), 0);
  a.expect(1, IBV_WC_SUCCESS);
  EXPECT_TRUE(b.poll().empty());
  EXPECT_EQ(memcmp(a.bytes.data() + 100, b.bytes.data() + 100, 5000), 0);
  EXPECT_EQ(b.bytes[99], 0);
  EXPECT_EQ(b.bytes[5100], 0);

  EXPECT_EQ(b.receive(2), 0);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE_WITH_IMM, 3, b, 10000, 77), 0);
  a.expect(3, IBV_WC_SUCCESS);
  std::vector<ibv_wc> got = b.poll();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(got[0].byte_len, 77U);
  EXPECT_EQ(got[0].imm_data, 1003U);
  EXPECT_EQ(got[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));

  EXPECT_EQ(b.receive(4, 20000, 50), 0);
  EXPECT_EQ(a.send(IBV_WR_SEND, 5, b, 3000, 40), 0);
  got = b.poll();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(got[0].byte_len, 40U);
  EXPECT_EQ(memcmp(a.bytes.data() + 3000, b.bytes.data() + 20000, 40), 0);
  a.poll();

  EXPECT_EQ(b.send(IBV_WR_RDMA_READ, 6, a, 30000, 3000), 0);
  got = b.poll();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(memcmp(a.bytes.data() + 30000, b.bytes.data() + 30000, 3000), 0);
}

TEST_F(Fake, InlineDataIsTakenWhenPosted) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  fill(&a.bytes);
  auto inlined = [](ibv_send_wr* wr) {
    wr->send_flags |= IBV_SEND_INLINE;
    wr->sg_list->lkey = 0;  // not looked at
    wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  };
  EXPECT_EQ(a.send(IBV_WR_SEND, 1, b, 0, 65, inlined), EINVAL);
  EXPECT_EQ(a.send(IBV_WR_SEND, 1, b, 0, 64, inlined), 0);
  a.bytes[5] = 99;
  EXPECT_EQ(b.receive(2), 0);
  a.expect(1, IBV_WC_SUCCESS);
  EXPECT_EQ(b.bytes[5], 6);
  b.poll();
}

TEST_F(Fake, ChecksTransitions) {
  End a(0), b(1);
  ibv_qp_attr attr = a.rtr(b);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), EINVAL);  // from RESET
  EXPECT_EQ(a.receive(1), EINVAL);
  EXPECT_EQ(a.to_init(), 0);
  EXPECT_EQ(a.receive(1), 0);
  EXPECT_EQ(a.send(IBV_WR_SEND, 1, b, 0, 8), EINVAL);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask & ~IBV_QP_RQ_PSN), EINVAL);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask | IBV_QP_TIMEOUT), EINVAL);
  attr.path_mtu = static_cast<ibv_mtu>(IBV_MTU_4096 + 1);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), EINVAL);
  attr = a.rtr(b);
  attr.max_dest_rd_atomic = 17;
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), EINVAL);
  attr = a.rtr(b);
  attr.ah_attr.grh.sgid_index = 0;  // IPv6 to IPv4
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), ENETUNREACH);
  attr = a.rtr(b);
  attr.ah_attr.grh.dgid = fake_gid("10.99.99.99").gid;
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), ETIMEDOUT);
  attr = a.rtr(b);
  fake.fail(Call::modify_qp, ENODEV, 1, 1);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtrMask), 0);
  attr = a.rts();
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtsMask), ENODEV);
  EXPECT_EQ(verbs().modify_qp(a.qp, &attr, End::kRtsMask), 0);
  a.qp->context = a.context;
  ibv_qp_attr error{};
  error.qp_state = IBV_QPS_ERR;
  EXPECT_EQ(verbs().modify_qp(a.qp, &error, IBV_QP_STATE), 0);
  a.expect(1, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(Fake, RefusesKeysAndBounds) {
  struct Case {
    const char* what;
    ibv_wc_status status;
    void (*adjust)(ibv_send_wr*);
  };
  const Case cases[] = {
      {"rkey", IBV_WC_REM_ACCESS_ERR, [](ibv_send_wr* wr) { wr->wr.rdma.rkey ^= 0x100; }},
      {"lkey for rkey", IBV_WC_REM_ACCESS_ERR, [](ibv_send_wr* wr) { wr->wr.rdma.rkey ^= 0x33; }},
      {"beyond", IBV_WC_REM_ACCESS_ERR, [](ibv_send_wr* wr) { wr->wr.rdma.remote_addr += 65536; }},
      {"before", IBV_WC_REM_ACCESS_ERR, [](ibv_send_wr* wr) { wr->wr.rdma.remote_addr -= 1; }},
      {"lkey", IBV_WC_LOC_PROT_ERR, [](ibv_send_wr* wr) { wr->sg_list->lkey++; }},
      {"local", IBV_WC_LOC_PROT_ERR, [](ibv_send_wr* wr) { wr->sg_list->addr -= 1; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    End a(0), b(1);
    a.connect(b);
    b.connect(a);
    EXPECT_EQ(b.receive(50), 0);
    EXPECT_EQ(a.receive(60), 0);
    EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 1, b, 0, 64, c.adjust), 0);
    EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 2, b, 0, 64), 0);  // flushed, like all after the first
    const std::vector<ibv_wc> got = a.poll();
    ASSERT_EQ(got.size(), 3U);
    EXPECT_EQ(got[0].status, c.status);
    EXPECT_EQ(got[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(got[2].wr_id, 2U);
    EXPECT_EQ(got[2].status, IBV_WC_WR_FLUSH_ERR);
    if (c.status == IBV_WC_REM_ACCESS_ERR) b.expect(50, IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_F(Fake, DeregisteredMemoryIsOutOfReach) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  const ibv_mr old = *b.mr;
  EXPECT_EQ(verbs().dereg_mr(b.mr), 0);
  b.mr = nullptr;
  ibv_mr copy = old;
  b.mr = &copy;
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 1, b, 0, 64), 0);
  b.mr = nullptr;
  a.expect(1, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(Fake, WaitsForReceives) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE_WITH_IMM, 1, b, 0, 64), 0);
  EXPECT_TRUE(a.poll().empty());
  fake.expire_retries();  // seven means for ever
  EXPECT_TRUE(a.poll().empty());
  EXPECT_EQ(b.receive(2), 0);
  a.expect(1, IBV_WC_SUCCESS);
  b.expect(2, IBV_WC_SUCCESS);
  EXPECT_EQ(fake.counters().waits_for_receive, 1U);

  End c(0), d(1);
  c.connect(d, 3);
  d.connect(c);
  EXPECT_EQ(c.send(IBV_WR_SEND, 1, d, 0, 64), 0);
  fake.expire_retries();
  c.expect(1, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(Fake, SlotsOfUnsignaledWorkAreFreedByLaterCompletions) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  auto silent = [](ibv_send_wr* wr) { wr->send_flags = 0; };
  for (int i = 0; i < 15; i++) EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, i, b, 0, 8, silent), 0);
  EXPECT_TRUE(a.poll().empty());
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 15, b, 0, 8), 0);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 16, b, 0, 8), ENOMEM);
  a.expect(15, IBV_WC_SUCCESS);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 16, b, 0, 8), 0);
}

TEST_F(Fake, PortDownDropsUntilRetriesEnd) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  fake.set_state("mlx5_1", 1, IBV_PORT_DOWN);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 1, b, 0, 8), 0);
  EXPECT_TRUE(a.poll().empty());
  fake.set_state("mlx5_1", 1, IBV_PORT_ACTIVE);
  a.expect(1, IBV_WC_SUCCESS);
  fake.set_state("mlx5_1", 1, IBV_PORT_DOWN);
  EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, 2, b, 0, 8), 0);
  fake.set_retry_ns(1000);
  const Deadline deadline = Deadline::in_ms(5000);
  std::vector<ibv_wc> got;
  while (got.empty() && !deadline.passed()) got = a.poll();
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].status, IBV_WC_RETRY_EXC_ERR);
  ibv_async_event event{};
  for (const ibv_event_type type :
       {IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_PORT_ERR}) {
    ASSERT_EQ(verbs().get_async_event(b.context, &event), 0);
    EXPECT_EQ(event.event_type, type);
    EXPECT_EQ(event.element.port_num, 1);
    verbs().ack_async_event(&event);
  }
}

TEST_F(Fake, ChannelsRingOncePerArming) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  auto readable = [&] {
    pollfd entry{b.channel->fd, POLLIN, 0};
    return poll(&entry, 1, 0) == 1;
  };
  for (int i = 0; i < 3; i++) EXPECT_EQ(b.receive(i), 0);
  EXPECT_EQ(a.send(IBV_WR_SEND, 1, b, 0, 0), 0);
  EXPECT_FALSE(readable());
  EXPECT_EQ(verbs().req_notify_cq(b.cq, 0), 0);
  EXPECT_FALSE(readable());  // what came before does not ring
  EXPECT_EQ(a.send(IBV_WR_SEND, 2, b, 0, 0), 0);
  EXPECT_EQ(a.send(IBV_WR_SEND, 3, b, 0, 0), 0);
  EXPECT_TRUE(readable());
  ibv_cq* cq = nullptr;
  void* user = nullptr;
  EXPECT_EQ(verbs().get_cq_event(b.channel, &cq, &user), 0);
  EXPECT_EQ(cq, b.cq);
  EXPECT_FALSE(readable());
  EXPECT_EQ(verbs().destroy_cq(cq), EBUSY);
  verbs().ack_cq_events(cq, 1);
  EXPECT_EQ(b.poll().size(), 3U);
  a.poll();
  stuck = 1;
  EXPECT_EQ(fake.counters().stuck, 1U);
}

TEST_F(Fake, QueueOverrunIsSeen) {
  End a(0), b(1, 2);
  a.connect(b);
  b.connect(a);
  for (int i = 0; i < 3; i++) EXPECT_EQ(b.receive(i), 0);
  for (int i = 0; i < 3; i++) EXPECT_EQ(a.send(IBV_WR_SEND, i, b, 0, 0), 0);
  ibv_wc wc{};
  EXPECT_EQ(verbs().poll_cq(b.cq, 1, &wc), -1);
  ibv_async_event event{};
  ASSERT_EQ(verbs().get_async_event(b.context, &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_CQ_ERR);
  verbs().ack_async_event(&event);
  a.poll();
  overruns = 1;
  EXPECT_EQ(fake.counters().overruns, 1U);
}

TEST_F(Fake, RemovedDeviceFailsItsQueuePairs) {
  End a(0), b(1);
  a.connect(b);
  b.connect(a);
  EXPECT_EQ(a.receive(1), 0);
  fake.remove_device("mlx5_0");
  a.expect(1, IBV_WC_WR_FLUSH_ERR);
  int count = 0;
  ibv_device** list = verbs().get_device_list(&count);
  EXPECT_EQ(count, 1);
  verbs().free_device_list(list);
  ibv_port_attr attr{};
  EXPECT_EQ(verbs().query_port(a.context, 1, &attr), ENODEV);
  fake.expire_retries();
}

// Over many seeds: data of different writes lands in another order than posted, yet an immediate
// never comes before the data in front of it.
TEST_F(Fake, ReordersDataButNotCompletions) {
  int early = 0;
  for (uint64_t seed = 1; seed <= 50; seed++) {
    fake.set_reordering(seed);
    End a(0), b(1);
    a.connect(b);
    b.connect(a);
    fill(&a.bytes);
    EXPECT_EQ(b.receive(9), 0);
    auto silent = [](ibv_send_wr* wr) { wr->send_flags = 0; };
    for (uint32_t i = 0; i < 4; i++) {
      EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE, i, b, 5000 * i, 5000, silent), 0);
    }
    EXPECT_EQ(a.send(IBV_WR_RDMA_WRITE_WITH_IMM, 4, b, 0, 0), 0);
    std::vector<ibv_wc> got;
    const Deadline deadline = Deadline::in_ms(5000);
    while (got.empty() && !deadline.passed()) {
      got = b.poll();
      if (got.empty() && b.bytes[16000] != 0 && b.bytes[10] == 0) early++;
    }
    ASSERT_EQ(got.size(), 1U);
    EXPECT_EQ(memcmp(a.bytes.data(), b.bytes.data(), 20000), 0);
    while (a.poll().empty() && !deadline.passed()) {
    }
  }
  EXPECT_GT(early, 0);
}

TEST_F(Fake, ThreadsShareIt) {
  constexpr int kRounds = 500;
  End a(0), b(1), c(0), d(1);
  auto work = [&](const End& from, const End& to) {
    from.connect(to);
    for (int round = 0; round < kRounds; round++) {
      ASSERT_EQ(from.send(IBV_WR_RDMA_WRITE, round, to, 128, 512), 0);
      while (from.poll().empty()) {
      }
    }
  };
  std::thread threads[] = {std::thread([&] { work(a, b); }), std::thread([&] { work(b, a); }),
                           std::thread([&] { work(c, d); }), std::thread([&] { work(d, c); })};
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake.counters().delivered, 4U * kRounds);
}

}  // namespace
}  // namespace bitrail::test
