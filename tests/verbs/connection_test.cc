// Connections over verbs when devices, ports and calls fail: what the requests end with, who is
// named, what works again afterwards, and that nothing stays behind (World looks at its end).
#include <atomic>
#include <climits>

#define TEST_OVER_VERBS 1
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Request;

Way one_port() {
  Way way{"verbs", "", 0, 0};
  way.ib.hca = "=mlx5_0";
  return way;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A receive that waits and a long send that nobody receives, in both directions.
struct Traffic {
  explicit Traffic(Pair* pair) {
    for (int i = 0; i < 2; i++) {
      receive(pair->sides[i].receiver.get(), got[i].data(), got[i].size(), 1, &requests[i]);
      send(pair->sides[i].sender.get(), data.data(), data.size(), 2, 0, &requests[2 + i]);
    }
    for (int i = 0; i < 10; i++) {
      for (Side& side : pair->sides) side.context->progress();
    }
  }
  bool done() const {
    return std::all_of(std::begin(requests), std::end(requests),
                       [](const Request& request) { return request.done; });
  }
  std::vector<uint8_t> data = pattern(100'000, 1);
  std::vector<uint8_t> got[2] = {std::vector<uint8_t>(50'000), std::vector<uint8_t>(50'000)};
  Request requests[4];
};

void expect_lost(const Traffic& traffic, const char* what) {
  for (const Request& request : traffic.requests) {
    EXPECT_EQ(request.status, BITRAIL_ERR_PEER_LOST) << request.text;
    EXPECT_TRUE(contains(request.text, "rank ")) << request.text;
    EXPECT_TRUE(contains(request.text, "127.0.0.1")) << request.text;
    EXPECT_TRUE(contains(request.text, what)) << request.text;
  }
}

// New connections between the same contexts carry messages.
void expect_new_connections_work(Pair* pair) {
  for (Side& side : pair->sides) {
    side.sender.reset();
    side.receiver.reset();
  }
  pair->connect();
  const std::vector<uint8_t> data = pattern(300'000, 2);
  std::vector<uint8_t> got(data.size());
  Request sending, receiving;
  send(pair->a().sender.get(), data.data(), data.size(), 1, 0, &sending);
  receive(pair->b().receiver.get(), got.data(), got.size(), 1, &receiving);
  ASSERT_TRUE(pair->pump([&] { return sending.done && receiving.done; }));
  EXPECT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
  EXPECT_EQ(got, data);
}

TEST(Connection, PortGoesDownAndComesBack) {
  Pair pair(one_port());
  Traffic traffic(&pair);
  EXPECT_FALSE(traffic.done());
  pair.world.fake().set_state("mlx5_0", 1, IBV_PORT_DOWN);
  ASSERT_TRUE(pair.pump([&] { return traffic.done(); }));
  expect_lost(traffic, "mlx5_0:1");
  Request request;
  bool accepted = true;
  const Status refused = pair.a().sender->isend(nullptr, 0, 1, 0, nullptr, &request, &accepted);
  EXPECT_EQ(refused.code(), BITRAIL_ERR_PEER_LOST);
  EXPECT_FALSE(accepted);
  std::unique_ptr<transport::Context::Connecting> pending;
  std::unique_ptr<transport::Sender> sender;
  const Status down =
      pair.a().context->connect(0, pair.b().handle, {1}, Deadline::in_ms(1000), &pending, &sender);
  EXPECT_FALSE(down.ok());
  EXPECT_TRUE(contains(down.text(), "mlx5_0:1")) << down.text();
  pair.world.fake().set_state("mlx5_0", 1, IBV_PORT_ACTIVE);
  // The event thread takes a moment.
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  Status again = failure(BITRAIL_ERR_SYSTEM, "not tried");
  while (!again.ok() && !deadline.passed()) {
    pending.reset();
    again = pair.a().context->connect(0, pair.b().handle, {1}, Deadline::in_ms(1000), &pending,
                                      &sender);
  }
  EXPECT_TRUE(again.ok()) << again.text();
  pending.reset();
  expect_new_connections_work(&pair);
}

// Connections of a combined device use its ports, all of them and no other.
TEST(Connection, CombinedDevices) {
  Pair pair({"verbs", "", 0, 0});
  std::unique_ptr<transport::Listener> listeners[2];
  for (int i = 0; i < 2; i++) {
    Side& side = pair.sides[i];
    side.sender.reset();
    side.receiver.reset();
    int first = -1, again = -1, reversed = -1;
    ASSERT_TRUE(side.context->combine({1, 2}, &first).ok());
    ASSERT_TRUE(side.context->combine({2, 1}, &reversed).ok());
    ASSERT_TRUE(side.context->combine({1, 2}, &again).ok());
    EXPECT_GE(first, side.context->devices());
    EXPECT_EQ(again, first);
    EXPECT_NE(reversed, first);
    side.device = first;
    side.listener.reset();
    ASSERT_TRUE(side.context->listen(first, &side.handle, &side.listener).ok());
  }
  const int before = pair.world.fake().counters().qps;
  pair.connect();
  EXPECT_EQ(pair.world.fake().counters().qps - before, 2 * 2 * 2);  // sides, directions, ports
  Traffic traffic(&pair);
  pair.world.fake().set_state("mlx5_0", 1, IBV_PORT_DOWN);
  Request requests[2];
  std::vector<uint8_t> data = pattern(200'000, 3), got(data.size());
  send(pair.a().sender.get(), data.data(), data.size(), 9, 0, &requests[0]);
  receive(pair.b().receiver.get(), got.data(), got.size(), 9, &requests[1]);
  ASSERT_TRUE(pair.pump([&] { return requests[0].done && requests[1].done; }));
  EXPECT_EQ(requests[1].status, BITRAIL_OK) << requests[1].text;
  EXPECT_EQ(got, data);
  EXPECT_FALSE(traffic.done());
  pair.world.fake().set_state("mlx5_2", 1, IBV_PORT_DOWN);
  ASSERT_TRUE(pair.pump([&] { return traffic.done(); }));
  expect_lost(traffic, "mlx5_2:1");
}

TEST(Connection, DevicesThatCannotBeCombined) {
  Pair pair({"verbs", "", 0, 0});
  int device = 0;
  for (const std::vector<int>& parts :
       {std::vector<int>{}, {0, 0}, {0, 3}, {-1}, {0, 1, 2, 0, 1}, {INT_MAX, 0}}) {
    const Status status = pair.a().context->combine(parts, &device);
    EXPECT_EQ(status.code(), BITRAIL_ERR_INVALID_ARGUMENT);
  }
  int whole = 0;
  ASSERT_TRUE(pair.a().context->combine({0, 1}, &whole).ok());
  EXPECT_EQ(pair.a().context->combine({whole, 2}, &device).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(pair.a().context->listen(whole + 1, &pair.a().handle, &pair.a().listener).code(),
            BITRAIL_ERR_INVALID_ARGUMENT);
}

TEST(Connection, GidChanges) {
  Pair pair(one_port());
  Traffic traffic(&pair);
  pair.world.fake().set_gids("mlx5_0", 1, {fake_gid("fe80::7"), fake_gid("10.9.9.9")});
  ASSERT_TRUE(pair.pump([&] { return traffic.done(); }));
  expect_lost(traffic, "GID");
  expect_new_connections_work(&pair);
}

TEST(Connection, DeviceIsRemoved) {
  Pair pair(one_port());
  Traffic traffic(&pair);
  pair.world.fake().remove_device("mlx5_0");
  ASSERT_TRUE(pair.pump([&] { return traffic.done(); }));
  expect_lost(traffic, "mlx5_0:1");
}

// Over several ports the others carry new connections.
TEST(Connection, OneOfSeveralPortsGoesDown) {
  Way way{"verbs", "", 0, 0};
  way.ib.split_data = true;
  Pair pair(way);
  Traffic traffic(&pair);
  pair.world.fake().set_state("mlx5_1", 1, IBV_PORT_DOWN);
  ASSERT_TRUE(pair.pump([&] { return traffic.done(); }));
  expect_lost(traffic, "mlx5_1:1");
  expect_new_connections_work(&pair);
}

// The peer's port is gone without a word: what is sent is not answered.
TEST(Connection, PeerVanishes) {
  Pair pair(one_port());
  Traffic traffic(&pair);
  pair.world.fake().set_retry_ns(2'000'000);
  pair.world.fake().set_state("mlx5_0", 1, IBV_PORT_DOWN, false);
  Request sends[2];
  for (int i = 0; i < 2; i++) {
    send(pair.sides[i].sender.get(), traffic.data.data(), 8, 3, 0, &sends[i]);
  }
  ASSERT_TRUE(pair.pump([&] { return traffic.requests[2].done && traffic.requests[3].done; }));
  for (int i = 2; i < 4; i++) {
    EXPECT_EQ(traffic.requests[i].status, BITRAIL_ERR_PEER_LOST);
    EXPECT_TRUE(contains(traffic.requests[i].text, "rank ")) << traffic.requests[i].text;
    EXPECT_TRUE(contains(traffic.requests[i].text, "retry")) << traffic.requests[i].text;
  }
  // Who only waits for a message learns of it by saying goodbye.
  for (Side& side : pair.sides) {
    side.sender.reset();
    side.receiver.reset();
  }
  for (int i = 0; i < 2; i++) EXPECT_EQ(traffic.requests[i].status, BITRAIL_ERR_PEER_LOST);
}

// Wrappers around the fake's functions; the tests are one at a time.
decltype(transport::verbs::Table::modify_qp) fake_modify = nullptr;
decltype(transport::verbs::Table::create_qp) fake_create = nullptr;
int refusals = 0, refusal_error = 0;
ibv_qp_state refused_state = IBV_QPS_RTR;
uint32_t last_qp = 0;

int modify(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == refused_state && refusals > 0) {
    refusals--;
    return refusal_error;
  }
  return fake_modify(qp, attributes, mask);
}
ibv_qp* create(ibv_pd* pd, ibv_qp_init_attr* attributes) {
  ibv_qp* qp = fake_create(pd, attributes);
  if (qp != nullptr) last_qp = qp->qp_num;
  return qp;
}

void wrap(FakeVerbs* fake, ibv_qp_state state, int error, int count) {
  fake_modify = fake->table().modify_qp;
  fake_create = fake->table().create_qp;
  fake->table().modify_qp = modify;
  fake->table().create_qp = create;
  refused_state = state;
  refusal_error = error;
  refusals = count;
}

// Two contexts that listen; not connected.
struct Unconnected {
  Unconnected(const transport::Options& first, const transport::Options& second) {
    const transport::Options* options[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
      const Status opened = transport::open(kTransport, *options[i], &sides[i].context);
      EXPECT_TRUE(opened.ok()) << opened.text();
      EXPECT_TRUE(sides[i].context->listen(0, &sides[i].handle, &sides[i].listener).ok());
    }
  }
  // Of the first to the second.
  Status connect(std::unique_ptr<transport::Sender>* sender) {
    std::unique_ptr<transport::Context::Connecting> pending;
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    while (!deadline.passed()) {
      BITRAIL_TRY(sides[0].context->connect(0, sides[1].handle, {1}, deadline, &pending, sender));
      if (*sender != nullptr) return {};
      if (sides[1].receiver == nullptr) {
        BITRAIL_TRY(sides[1].listener->accept(&sides[1].receiver, &sides[1].peer));
      }
      for (Side& side : sides) side.context->progress();
    }
    return failure(BITRAIL_ERR_TIMEOUT, "set-up hangs");
  }
  Side sides[2];
};

TEST(SetUp, TimedOutModifyIsTriedAgain) {
  World world;
  wrap(&world.fake(), IBV_QPS_RTR, ETIMEDOUT, 3);
  Unconnected two(options_for(one_port(), 0), options_for(one_port(), 1));
  std::unique_ptr<transport::Sender> sender;
  const Status status = two.connect(&sender);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(refusals, 0);
}

TEST(SetUp, RefusedModifyNamesBothEnds) {
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
    World world;
    wrap(&world.fake(), state, EINVAL, 1000);
    Unconnected two(options_for(one_port(), 0), options_for(one_port(), 1));
    std::unique_ptr<transport::Sender> sender;
    const Status status = two.connect(&sender);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(contains(status.text(), "rank 1")) << status.text();
    EXPECT_TRUE(contains(status.text(), "mlx5_0:1")) << status.text();
    EXPECT_TRUE(contains(status.text(), "modify_qp")) << status.text();
  }
}

TEST(SetUp, KindsOfPortsMustAgree) {
  World world;
  FakeDevice infiniband;
  infiniband.name = "mlx5_9";
  infiniband.ports[0].roce = false;
  infiniband.ports[0].lid = 5;
  world.fake().add_device(infiniband);
  Way other = one_port();
  other.ib.hca = "=mlx5_9";
  Unconnected two(options_for(one_port(), 0), options_for(other, 1));
  std::unique_ptr<transport::Sender> sender;
  const Status status = two.connect(&sender);
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(contains(status.text(), "InfiniBand")) << status.text();
  EXPECT_TRUE(contains(status.text(), "BITRAIL_IB_HCA")) << status.text();
}

TEST(SetUp, InfiniBandByLid) {
  World world;
  FakeDevice infiniband;
  infiniband.name = "mlx5_9";
  infiniband.ports[0].roce = false;
  infiniband.ports[0].lid = 5;
  infiniband.ports[0].mtu = IBV_MTU_2048;
  infiniband.max_qp_wr = 256;
  infiniband.max_inline = 0;
  world.fake().add_device(infiniband);
  Way way = one_port();
  way.ib.hca = "=mlx5_9";
  Unconnected two(options_for(way, 0), options_for(way, 1));
  std::unique_ptr<transport::Sender> sender;
  const Status status = two.connect(&sender);
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Connection, QueuePairFailsFatally) {
  World world;
  wrap(&world.fake(), IBV_QPS_RTR, 0, 0);
  Unconnected two(options_for(one_port(), 0), options_for(one_port(), 1));
  std::unique_ptr<transport::Sender> sender;
  ASSERT_TRUE(two.connect(&sender).ok());
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  while (two.sides[1].receiver == nullptr && !deadline.passed()) {
    ASSERT_TRUE(two.sides[1].listener->accept(&two.sides[1].receiver, &two.sides[1].peer).ok());
  }
  std::vector<uint8_t> got(50'000);
  Request receiving;
  receive(two.sides[1].receiver.get(), got.data(), got.size(), 1, &receiving);
  world.fake().fail_qp(last_qp);  // the acceptor's: made last
  while (!receiving.done && !deadline.passed()) two.sides[1].context->progress();
  EXPECT_EQ(receiving.status, BITRAIL_ERR_PEER_LOST) << receiving.text;
  EXPECT_TRUE(contains(receiving.text, "rank 0")) << receiving.text;
}

TEST(Memory, RegisteredBuffersNeedNoCallsOnTheWay) {
  Pair pair(one_port());
  std::vector<uint8_t> data = pattern(200'000, 1), got(data.size());
  std::unique_ptr<transport::Memory> from, to;
  ASSERT_TRUE(
      pair.a().context->register_memory(data.data(), data.size(), transport::kHost, &from).ok());
  ASSERT_TRUE(
      pair.b().context->register_memory(got.data(), got.size(), transport::kHost, &to).ok());
  const FakeCounters before = pair.world.fake().counters();
  for (int i = 0; i < 50; i++) {
    Request sending, receiving;
    transport::Buffer buffer;
    buffer.data = got.data();
    buffer.bytes = got.size();
    buffer.tag = 1;
    buffer.memory = to.get();
    bool accepted = false;
    ASSERT_TRUE(pair.b().receiver->irecv(1, &buffer, &receiving, &accepted).ok());
    ASSERT_TRUE(accepted);
    ASSERT_TRUE(pair.a()
                    .sender->isend(data.data(), data.size(), 1, 0, from.get(), &sending, &accepted)
                    .ok());
    ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; }));
    ASSERT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
  }
  EXPECT_EQ(got, data);
  const FakeCounters after = pair.world.fake().counters();
  for (const Call call : {Call::reg_mr, Call::create_qp, Call::modify_qp, Call::create_cq}) {
    EXPECT_EQ(after.calls[static_cast<int>(call)], before.calls[static_cast<int>(call)]);
  }
  Request request;
  bool accepted = false;
  const Status outside =
      pair.a().sender->isend(data.data() + 1, data.size(), 1, 0, from.get(), &request, &accepted);
  EXPECT_EQ(outside.code(), BITRAIL_ERR_INVALID_ARGUMENT) << outside.text();
}

TEST(Memory, OtherBuffersAreRegisteredForTheRequestOnly) {
  Pair pair(one_port());
  const int before = pair.world.fake().counters().mrs;
  std::vector<uint8_t> data = pattern(200'000, 1), got(data.size());
  Request sending, receiving;
  send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &sending);
  receive(pair.b().receiver.get(), got.data(), got.size(), 1, &receiving);
  EXPECT_GT(pair.world.fake().counters().mrs, before);
  ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; }));
  EXPECT_EQ(got, data);
  EXPECT_EQ(pair.world.fake().counters().mrs, before);
}

TEST(Memory, RefusedRegistrationIsAnErrorAndTheConnectionGoesOn) {
  Pair pair(one_port());
  std::vector<uint8_t> data = pattern(200'000, 1), got(data.size());
  pair.world.fake().fail(Call::reg_mr, ENOMEM, 100);
  Request request;
  bool accepted = true;
  const Status refused =
      pair.a().sender->isend(data.data(), data.size(), 1, 0, nullptr, &request, &accepted);
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(accepted);
  EXPECT_TRUE(request.done);
  EXPECT_TRUE(contains(refused.text(), "memlock")) << refused.text();
  transport::Buffer buffers[2];
  for (transport::Buffer& buffer : buffers) buffer = {got.data(), got.size(), 1, nullptr};
  EXPECT_FALSE(pair.b().receiver->irecv(2, buffers, &request, &accepted).ok());
  EXPECT_FALSE(accepted);
  pair.world.fake().fail(Call::reg_mr, 0, 0);
  Request sending, receiving;
  send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &sending);
  receive(pair.b().receiver.get(), got.data(), got.size(), 1, &receiving);
  ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; }));
  EXPECT_EQ(got, data);
}

}  // namespace
}  // namespace bitrail::test
