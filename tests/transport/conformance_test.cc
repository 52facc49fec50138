// What transport.h promises, at random: sizes, orders, delays, groups, tags, lengths that do not
// match; on every device, in one thread or several. The seed is in the output; TEST_SEED sets it.
#include <atomic>
#include <random>
#include <thread>

#include "runtime/common/clock.h"
#include "tests/support/spawn.h"
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Buffer;
using transport::Request;

class Conformance : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Transports, Conformance, testing::ValuesIn(ways()), way_name);

uint64_t seed() {
  const char* text = getenv("TEST_SEED");
  const uint64_t value = text != nullptr ? strtoull(text, nullptr, 0) : std::random_device{}();
  testing::Test::RecordProperty("seed", std::to_string(value));
  fprintf(stderr, "TEST_SEED=%llu\n", static_cast<unsigned long long>(value));
  return value;
}

// Few huge ones, many small ones, and the edges of protocols.
size_t random_size(std::mt19937_64* random) {
  static const size_t edges[] = {0, 1, 8, 64, 127, 128, 129, 4095, 4096, 8192, 8193, 65535, 65537};
  switch ((*random)() % 8) {
    case 0:
      return 0;
    case 1:
    case 2:
      return edges[(*random)() % std::size(edges)];
    case 3:
      return (*random)() % 300'000;
    default:
      return (*random)() % 3'000;
  }
}

struct Message {
  uint64_t tag = 0;
  size_t bytes = 0, capacity = 0;
  bool fits() const { return bytes <= capacity; }
  std::vector<uint8_t> data, got;
};

// One direction of a connection: a plan that both ends know, so that each message's fate is known.
class Plan {
 public:
  Plan(uint64_t seed, int count) : random_(seed) {
    for (int i = 0; i < count; i++) {
      Message message;
      message.tag = random_() % 3;  // equal tags are common
      message.bytes = random_size(&random_);
      message.capacity = message.bytes;
      if (random_() % 4 == 0) message.capacity += random_() % 100;
      if (random_() % 10 == 0 && message.bytes > 0) message.capacity = random_() % message.bytes;
      message.data = pattern(message.bytes, random_());
      message.got.assign(message.capacity + 1, 0xaa);
      messages_.push_back(std::move(message));
    }
    // Groups of neighbours in an order of their own: what matches is decided within each tag only.
    for (int i = 0; i < count;) {
      const int group =
          1 +
          static_cast<int>(random_() % (random_() % 3 == 0 ? transport::kMaxGroupedReceives : 1));
      groups_.push_back({i, std::min(group, count - i)});
      i += groups_.back().second;
    }
  }

  std::vector<Message>& messages() { return messages_; }
  const std::vector<std::pair<int, int>>& groups() const { return groups_; }
  uint64_t draw() { return random_(); }

 private:
  std::mt19937_64 random_;
  std::vector<Message> messages_;
  std::vector<std::pair<int, int>> groups_;
};

// Drives a plan forward from both ends, a random step at a time.
class Exchange {
 public:
  Exchange(transport::Sender* sender, transport::Receiver* receiver, Plan* plan)
      : sender_(sender),
        receiver_(receiver),
        plan_(plan),
        sends_(plan->messages().size()),
        receives_(plan->groups().size()) {}

  void step() {
    const uint64_t choice = plan_->draw() % 4;
    if (choice <= 1) send_one();
    if (choice >= 1) receive_one();
  }

  bool done() const {
    const auto ended = [](const Request& request) { return request.done; };
    return next_send_ == sends_.size() && next_group_ == receives_.size() &&
           std::all_of(sends_.begin(), sends_.end(), ended) &&
           std::all_of(receives_.begin(), receives_.end(), ended);
  }

  void expect_kept() {
    for (size_t i = 0; i < sends_.size(); i++) {
      ASSERT_EQ(sends_[i].status, BITRAIL_OK) << i << ": " << sends_[i].text;
    }
    for (size_t g = 0; g < receives_.size(); g++) {
      const auto [first, count] = plan_->groups()[g];
      bool fits = true;
      for (int i = 0; i < count; i++) fits &= plan_->messages()[index(first, i)].fits();
      ASSERT_EQ(receives_[g].status, fits ? BITRAIL_OK : BITRAIL_ERR_MISMATCH) << receives_[g].text;
      for (int i = 0; i < count; i++) {
        const Message& message = plan_->messages()[index(first, i)];
        ASSERT_EQ(message.got.back(), 0xaa) << "behind the end of message " << first + i;
        if (!message.fits()) {
          ASSERT_EQ(std::count(message.got.begin(), message.got.end(), 0xaa),
                    static_cast<std::ptrdiff_t>(message.got.size()));
        } else if (fits) {
          ASSERT_EQ(receives_[g].received[i], message.bytes);
          ASSERT_TRUE(std::equal(message.data.begin(), message.data.end(), message.got.begin()))
              << "message " << first + i << " of " << message.bytes << " bytes";
        }
      }
    }
  }

 private:
  static size_t index(int first, int i) {
    return static_cast<size_t>(first) + static_cast<size_t>(i);
  }

  void send_one() {
    if (next_send_ == sends_.size()) return;
    Message& message = plan_->messages()[next_send_];
    bool accepted = false;
    const Status status =
        sender_->isend(message.data.data(), message.bytes, message.tag,
                       static_cast<uint32_t>(next_send_), nullptr, &sends_[next_send_], &accepted);
    ASSERT_TRUE(status.ok()) << status.text();
    if (accepted) next_send_++;
  }

  void receive_one() {
    if (next_group_ == receives_.size()) return;
    const auto [first, count] = plan_->groups()[next_group_];
    Buffer buffers[transport::kMaxGroupedReceives];
    for (int i = 0; i < count; i++) {
      Message& message = plan_->messages()[index(first, i)];
      buffers[i].data = message.got.data();
      buffers[i].bytes = message.capacity;
      buffers[i].tag = message.tag;
    }
    bool accepted = false;
    const Status status = receiver_->irecv(count, buffers, &receives_[next_group_], &accepted);
    ASSERT_TRUE(status.ok()) << status.text();
    if (accepted) next_group_++;
  }

  transport::Sender* sender_;
  transport::Receiver* receiver_;
  Plan* plan_;
  std::vector<Request> sends_, receives_;
  size_t next_send_ = 0, next_group_ = 0;
};

void run_plans(Pair* pair, uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  Plan there(random(), count), back(random(), count);
  Exchange exchanges[] = {{pair->a().sender.get(), pair->b().receiver.get(), &there},
                          {pair->b().sender.get(), pair->a().receiver.get(), &back}};
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  while (!exchanges[0].done() || !exchanges[1].done()) {
    ASSERT_FALSE(deadline.passed()) << "hangs with TEST_SEED=" << seed;
    for (Exchange& exchange : exchanges) exchange.step();
    if (testing::Test::HasFatalFailure()) return;
    for (Side& side : pair->sides) {
      if (random() % 3 == 0) side.context->progress();
    }
    if (random() % 64 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
  }
  for (Exchange& exchange : exchanges) exchange.expect_kept();
}

TEST_P(Conformance, RandomMessagesBothWays) {
  const uint64_t first = seed();
  Pair pair(GetParam());
  for (uint64_t round = 0; round < 3; round++) {
    run_plans(&pair, first + round, 120);
    if (HasFatalFailure()) return;
  }
}

// Connections made from every device of one to every device of the other.
TEST_P(Conformance, EveryPairOfDevices) {
  Pair pair(GetParam());
  const uint64_t first = seed();
  const int devices = std::min(3, pair.a().context->devices());
  for (int from = 0; from < devices; from++) {
    for (int to = 0; to < devices; to++) {
      for (Side& side : pair.sides) {
        side.receiver.reset();
        side.sender.reset();
        const int device = &side == &pair.sides[0] ? from : to;
        ASSERT_TRUE(side.context->listen(device, &side.handle, &side.listener).ok());
        side.device = device;
      }
      pair.connect();
      if (HasFatalFailure()) return;
      run_plans(&pair, first + static_cast<uint64_t>(from * devices + to), 30);
      if (HasFatalFailure()) return;
    }
  }
}

// Contexts are independent: each thread has a pair of its own.
TEST_P(Conformance, FourThreadsEachWithItsContexts) {
  constexpr int kThreads = 4;
  const uint64_t first = seed();
  std::vector<std::unique_ptr<Pair>> pairs;
  pairs.reserve(kThreads);
  for (int i = 0; i < kThreads; i++) pairs.push_back(std::make_unique<Pair>(GetParam()));
  if (HasFatalFailure()) return;
  std::atomic<int> good{0};
  spawn(kThreads, [&](int thread) {
    run_plans(pairs[static_cast<size_t>(thread)].get(), first + static_cast<uint64_t>(thread), 60);
    if (!HasFatalFailure()) good++;
  });
  EXPECT_EQ(good, kThreads);
}

// A receiver that goes takes its posted receives with it; the sender is told or is done, and both
// contexts go on with a new connection.
TEST_P(Conformance, CloseCancelsInAnyState) {
  std::mt19937_64 random(seed());
  Pair pair(GetParam());
  for (int round = 0; round < 12; round++) {
    const size_t bytes = random_size(&random) + 1;
    const std::vector<uint8_t> data = pattern(bytes, random());
    std::vector<std::vector<uint8_t>> got(3, std::vector<uint8_t>(bytes, 0xaa));
    Request receives[3], sends[3];
    const auto sent = static_cast<int>(random() % 4), posted = static_cast<int>(random() % 4);
    for (int i = 0; i < 3; i++) {
      if (i < sent) send(pair.a().sender.get(), data.data(), bytes, 5, 0, &sends[i]);
      if (i < posted) receive(pair.b().receiver.get(), got[i].data(), bytes, 5, &receives[i]);
      for (uint64_t turns = random() % 5; turns > 0; turns--) {
        pair.a().context->progress();
        pair.b().context->progress();
      }
    }
    pair.b().receiver.reset();
    const std::vector<std::vector<uint8_t>> before = got;
    for (int i = 0; i < posted; i++) {
      ASSERT_TRUE(receives[i].done);
      if (receives[i].status == BITRAIL_OK) {
        ASSERT_EQ(got[i], data);
      } else {
        ASSERT_EQ(receives[i].status, BITRAIL_ERR_ABORTED) << receives[i].text;
      }
    }
    ASSERT_TRUE(pair.pump([&] { return sends[0].done && sends[1].done && sends[2].done; }));
    ASSERT_EQ(got, before) << "written to after the receiver's end";
    pair.a().sender.reset();
    pair.a().receiver.reset();
    pair.b().sender.reset();
    pair.connect();
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace bitrail::test
