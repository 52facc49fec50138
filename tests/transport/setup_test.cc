// Connection set-up: good, bad and hostile peers; sleeping on the event descriptor.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/common/clock.h"
#include "runtime/transport/handle.h"
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Context;
using transport::Handle;
using transport::Request;

const Way kPlain = ways()[0];

std::unique_ptr<Context> open_context(const transport::Options& options) {
  std::unique_ptr<Context> context;
  const Status status = transport::open(kTransport, options, &context);
  EXPECT_TRUE(status.ok()) << status.text();
  return context;
}

// Polls until the connection is made or refused; `others` are progressed and accept meanwhile.
Status connect_to(Context* context, const Handle& handle, int rank, int64_t timeout_ms,
                  Side* acceptor, std::unique_ptr<transport::Sender>* sender) {
  std::unique_ptr<Context::Connecting> pending;
  const Deadline deadline = Deadline::in_ms(timeout_ms);
  for (;;) {
    BITRAIL_TRY(context->connect(0, handle, {rank}, deadline, &pending, sender));
    if (*sender != nullptr) return {};
    context->progress();
    if (acceptor != nullptr && acceptor->receiver == nullptr) {
      BITRAIL_TRY(acceptor->listener->accept(&acceptor->receiver, &acceptor->peer));
      acceptor->context->progress();
    }
  }
}

Side open_listener(const transport::Options& options) {
  Side side;
  side.context = open_context(options);
  const Status status = side.context->listen(0, &side.handle, &side.listener);
  EXPECT_TRUE(status.ok()) << status.text();
  return side;
}

TEST(Open, NamesWhatItKnows) {
  const World world;
  std::unique_ptr<Context> context;
  const Status status = transport::open("carrier-pigeon", options_for(kPlain, 0), &context);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("ucx"), std::string::npos) << status.text();
  EXPECT_EQ(context, nullptr);
  ASSERT_TRUE(transport::open("auto", options_for(kPlain, 0), &context).ok());
  EXPECT_GE(context->devices(), 1);
  EXPECT_GE(context->device(0).max_message_bytes, size_t{1} << 30);
  bool found = false;
  for (const auto& transport : transport::available()) found |= transport.name == context->name();
  EXPECT_TRUE(found);
}

TEST(Open, RefusesUnknownAddresses) {
  const World world;
  transport::Options options = options_for(kPlain, 0);
  options.bind_address = "no-such-interface";
  std::unique_ptr<Context> context;
  const Status status = transport::open(kTransport, options, &context);
  EXPECT_EQ(status.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(status.text().find("BITRAIL_INTERFACE"), std::string::npos) << status.text();
}

TEST(Connect, GarbageHandlesAreRefused) {
  const World world;
  const auto context = open_context(options_for(kPlain, 0));
  Side other = open_listener(options_for(kPlain, 1));
  std::unique_ptr<transport::Sender> sender;
  Handle zero, noise;
  memcpy(noise.bytes.data(), pattern(128, 5).data(), 128);
  for (const Handle& handle : {zero, noise}) {
    const Status status = connect_to(context.get(), handle, 1, 1000, nullptr, &sender);
    EXPECT_EQ(status.code(), BITRAIL_ERR_PROTOCOL) << status.text();
  }
  // Byte 4 is the version, byte 6 the transport.
  Handle version = other.handle, elsewhere = other.handle;
  version.bytes[4]++;
  elsewhere.bytes[6] = static_cast<uint8_t>(kOtherKind);
  const Status wrong_version = connect_to(context.get(), version, 1, 1000, nullptr, &sender);
  EXPECT_EQ(wrong_version.code(), BITRAIL_ERR_PROTOCOL);
  EXPECT_NE(wrong_version.text().find("version"), std::string::npos) << wrong_version.text();
  const Status wrong_kind = connect_to(context.get(), elsewhere, 1, 1000, nullptr, &sender);
  EXPECT_EQ(wrong_kind.code(), BITRAIL_ERR_PROTOCOL);
  EXPECT_NE(wrong_kind.text().find(kOtherTransport), std::string::npos) << wrong_kind.text();
  // The nonce follows: a handle of an earlier listener on the same port.
  Handle stale = other.handle;
  stale.bytes[8] ^= 1;
  const Status refused = connect_to(context.get(), stale, 1, 5000, &other, &sender);
  EXPECT_EQ(refused.code(), BITRAIL_ERR_PROTOCOL);
  EXPECT_NE(refused.text().find("stale"), std::string::npos) << refused.text();
  EXPECT_EQ(other.receiver, nullptr);
}

TEST(Connect, EachRefusedProofHasItsError) {
  const World world;
  Side listener = open_listener(options_for(kPlain, 1));
  struct {
    const char *secret, *job;
    bitrail_status_t expected;
  } cases[] = {{"another secret", nullptr, BITRAIL_ERR_SECRET_WRONG},
               {"", nullptr, BITRAIL_ERR_SECRET_MISSING},
               {nullptr, "another job", BITRAIL_ERR_JOB_ID}};
  for (const auto& c : cases) {
    transport::Options options = options_for(kPlain, 0);
    if (c.secret != nullptr) options.identity.secret = c.secret;
    if (c.job != nullptr) options.identity.job_id = c.job;
    const auto context = open_context(options);
    std::unique_ptr<transport::Sender> sender;
    const Status status = connect_to(context.get(), listener.handle, 1, 5000, &listener, &sender);
    EXPECT_EQ(status.code(), c.expected) << status.text();
    EXPECT_EQ(listener.receiver, nullptr);
  }
  // And the listener still serves those who know.
  const auto context = open_context(options_for(kPlain, 0));
  std::unique_ptr<transport::Sender> sender;
  EXPECT_TRUE(connect_to(context.get(), listener.handle, 1, 5000, &listener, &sender).ok());
}

TEST(Connect, NobodyThereAndNobodyAnswering) {
  const World world;
  const auto context = open_context(options_for(kPlain, 0));
  std::unique_ptr<transport::Sender> sender;
  Handle gone;
  {
    Side listener = open_listener(options_for(kPlain, 1));
    gone = listener.handle;
  }
  const Status refused = connect_to(context.get(), gone, 1, 5000, nullptr, &sender);
  EXPECT_EQ(refused.code(), BITRAIL_ERR_PEER_LOST) << refused.text();
  EXPECT_NE(refused.text().find("rank 1"), std::string::npos) << refused.text();
  EXPECT_NE(refused.text().find("127.0.0.1"), std::string::npos) << refused.text();
  // A listener whose process does not look after it.
  Side asleep = open_listener(options_for(kPlain, 1));
  const Status late = connect_to(context.get(), asleep.handle, 1, 200, nullptr, &sender);
  EXPECT_EQ(late.code(), BITRAIL_ERR_TIMEOUT) << late.text();
  EXPECT_NE(late.text().find("BITRAIL_TIMEOUT_MS"), std::string::npos) << late.text();
}

TEST(Connect, ToAnotherRankThanExpected) {
  const World world;
  Side listener = open_listener(options_for(kPlain, 1));
  const auto context = open_context(options_for(kPlain, 0));
  std::unique_ptr<transport::Sender> sender;
  const Status status = connect_to(context.get(), listener.handle, 5, 5000, &listener, &sender);
  EXPECT_EQ(status.code(), BITRAIL_ERR_PROTOCOL) << status.text();
}

TEST(Accept, StrangersDoNotStopIt) {
  const World world;
  Side listener = open_listener(options_for(kPlain, 1));
  transport::ListenAddress address;
  ASSERT_TRUE(transport::decode_handle(listener.handle, kKind, &address).ok());
  const std::vector<uint8_t> noise = pattern(5000, 11);
  std::vector<int> strangers;
  for (int i = 0; i < 30; i++) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&address.socket),
                        transport::address_length(address.socket)),
              0);
    if (i % 3 != 0) {
      EXPECT_GT(::send(fd, noise.data(), static_cast<size_t>(i * 100 + 1), MSG_NOSIGNAL), 0);
    }
    if (i % 3 == 1) {
      close(fd);
    } else {
      strangers.push_back(fd);  // stays and says no more
    }
  }
  const auto context = open_context(options_for(kPlain, 0));
  std::unique_ptr<transport::Sender> sender;
  const Status status = connect_to(context.get(), listener.handle, 1, 20'000, &listener, &sender);
  EXPECT_TRUE(status.ok()) << status.text();
  // Those who wait without a word are ended at a time that the owner is told.
  EXPECT_LT(listener.context->next_timer_ns(), now_ns() + 11'000'000'000);
  for (const int fd : strangers) close(fd);
}

TEST(Connect, ManyConnectionsBetweenTwoContexts) {
  const World world;
  Side listener = open_listener(options_for(kPlain, 1));
  const auto context = open_context(options_for(kPlain, 0));
  constexpr int kCount = 128;
  std::vector<std::unique_ptr<Context::Connecting>> pending(kCount);
  std::vector<std::unique_ptr<transport::Sender>> senders(kCount);
  std::vector<std::unique_ptr<transport::Receiver>> receivers;
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  size_t made = 0;
  while (made < kCount || receivers.size() < kCount) {
    ASSERT_FALSE(deadline.passed());
    for (int i = 0; i < kCount; i++) {
      if (senders[i] != nullptr) continue;
      ASSERT_TRUE(
          context->connect(0, listener.handle, {1}, deadline, &pending[i], &senders[i]).ok());
      if (senders[i] != nullptr) made++;
    }
    std::unique_ptr<transport::Receiver> receiver;
    ASSERT_TRUE(listener.listener->accept(&receiver, &listener.peer).ok());
    if (receiver != nullptr) receivers.push_back(std::move(receiver));
  }
  // Each connection is its own: the same tag on all of them.
  std::vector<uint64_t> sent(kCount), got(kCount);
  std::vector<Request> sends(kCount), receives(kCount);
  for (int i = 0; i < kCount; i++) {
    sent[i] = static_cast<uint64_t>(i) + 1;
    receive(receivers[i].get(), &got[i], 8, 1, &receives[i]);
    send(senders[i].get(), &sent[i], 8, 1, 0, &sends[i]);
  }
  while (std::any_of(receives.begin(), receives.end(), [](const Request& r) { return !r.done; })) {
    ASSERT_FALSE(deadline.passed());
    context->progress();
    listener.context->progress();
  }
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, sent);
}

TEST(Connect, ToItself) {
  const World world;
  Side side = open_listener(options_for(kPlain, 0));
  std::unique_ptr<transport::Sender> sender;
  ASSERT_TRUE(connect_to(side.context.get(), side.handle, 0, 5000, &side, &sender).ok());
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  while (side.receiver == nullptr) {
    ASSERT_FALSE(deadline.passed());
    ASSERT_TRUE(side.listener->accept(&side.receiver, &side.peer).ok());
  }
  const std::vector<uint8_t> data = pattern(300'000, 1);
  std::vector<uint8_t> got(data.size());
  Request sending, receiving;
  send(sender.get(), data.data(), data.size(), 1, 0, &sending);
  receive(side.receiver.get(), got.data(), got.size(), 1, &receiving);
  while (!receiving.done || !sending.done) {
    ASSERT_FALSE(deadline.passed());
    side.context->progress();
  }
  EXPECT_EQ(got, data);
}

TEST(Memory, IsRegisteredAndReleased) {
  const World world;
  const auto context = open_context(options_for(kPlain, 0));
  std::vector<uint8_t> data(1 << 20);
  std::unique_ptr<transport::Memory> first, second;
  ASSERT_TRUE(context->register_memory(data.data(), data.size(), transport::kHost, &first).ok());
  ASSERT_TRUE(context->register_memory(data.data(), data.size(), transport::kHost, &second).ok());
  EXPECT_EQ(context->register_memory(data.data(), data.size(), transport::kCuda, &second).code(),
            BITRAIL_ERR_UNSUPPORTED);
}

class Sleeping : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Transports, Sleeping, testing::ValuesIn(ways()), way_name);

// A receiver that sleeps on the event descriptor is woken by each message and turns few rounds.
TEST_P(Sleeping, WakesForMessagesAndDoesNotSpin) {
  Pair pair(GetParam());
  constexpr int kMessages = 20;
  std::atomic<bool> all_received{false};
  int rounds = 0;
  std::thread sleeper([&] {
    Side& side = pair.b();
    std::vector<uint8_t> got(100'000);
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    for (int i = 0; i < kMessages; i++) {
      Request receiving;
      receive(side.receiver.get(), got.data(), got.size(), 1, &receiving);
      while (!receiving.done) {
        ASSERT_FALSE(deadline.passed());
        rounds++;
        if (side.context->progress() > 0) continue;
        bool idle = false;
        const Status armed = side.context->arm(&idle);
        ASSERT_TRUE(armed.ok()) << armed.text();
        if (!idle) continue;
        pollfd entry{side.context->event_fd(), POLLIN, 0};
        const int64_t left = side.context->next_timer_ns() - now_ns();
        poll(&entry, 1, left > 1'000'000'000 ? 1000 : static_cast<int>(left / 1'000'000 + 1));
      }
      EXPECT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
    }
    all_received = true;
  });
  const std::vector<uint8_t> data = pattern(100'000, 2);
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  for (int i = 0; i < kMessages; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Request sending;
    send(pair.a().sender.get(), data.data(), i % 2 == 0 ? 8 : data.size(), 1, 0, &sending);
    while (!sending.done && !deadline.passed()) pair.a().context->progress();
    EXPECT_TRUE(sending.done);
  }
  while (!all_received && !deadline.passed()) pair.a().context->progress();
  sleeper.join();
  // Spinning through 100 ms would be hundreds of thousands.
  EXPECT_LT(rounds, 20'000);
}

}  // namespace
}  // namespace bitrail::test
