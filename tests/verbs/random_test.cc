// Messages of random sizes, tags and orders, posted and progressed in random turns, over 1 to 3
// ports and several queue pairs with packets out of order: the k-th message of a tag meets its k-th
// receive, whatever crossed on the way.
#include <map>
#include <random>

#define TEST_OVER_VERBS 1
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Buffer;
using transport::Request;

struct Message {
  std::vector<uint8_t> data;
  uint64_t tag;
  Request request;
};
struct Receive {
  std::vector<uint8_t> got;
  uint64_t tag;
};
struct Group {
  std::vector<size_t> members;
  Request request;
};

class Random : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Random, testing::Range(0, 24));

Way way_of(int seed) {
  Way way{"verbs", "", 0, 0};
  way.ib.rails = seed % 3 + 1;
  way.ib.qps_per_connection = seed / 3 % 2 * 2 + 1;
  way.ib.split_data = seed / 6 % 2 == 0;
  way.ib.adaptive_routing = seed / 2 % 2 == 0 ? "on" : "off";
  way.reordering = seed % 4 == 0 ? 0 : static_cast<uint64_t>(seed);
  return way;
}

TEST_P(Random, KthMessageMeetsKthReceive) {
  std::mt19937_64 random(static_cast<uint64_t>(GetParam()) + 1);
  const auto below = [&random](size_t limit) { return random() % limit; };
  const size_t sizes[] = {0, 1, 8, 200, 5000, 8192, 8193, 30'000, 100'000, 700'001};
  Pair pair(way_of(GetParam()));
  constexpr size_t kCount = 400;
  const size_t tags = 1 + below(4);
  std::vector<Message> messages(kCount);
  std::vector<Receive> receives(kCount);
  // As many receives of each tag as messages, in another order.
  std::vector<uint64_t> order(kCount);
  for (size_t i = 0; i < kCount; i++) order[i] = messages[i].tag = below(tags);
  for (size_t i = kCount; i-- > 1;) std::swap(order[i], order[std::max(i, size_t{20}) - below(20)]);
  std::map<uint64_t, std::vector<size_t>> of_tag;
  for (size_t i = 0; i < kCount; i++) {
    messages[i].data = pattern(sizes[below(10)], i);
    of_tag[messages[i].tag].push_back(i);
  }
  std::map<uint64_t, size_t> next;
  std::vector<size_t> partner(kCount);  // of receives
  for (size_t i = 0; i < kCount; i++) {
    receives[i].tag = order[i];
    partner[i] = of_tag[order[i]][next[order[i]]++];
    size_t capacity = messages[partner[i]].data.size() + 1;
    if (below(6) == 0) capacity = sizes[below(10)];
    receives[i].got.resize(capacity + 1, 0xaa);
  }
  std::vector<Group> groups(kCount);
  size_t sent = 0, received = 0, group = 0;
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  const auto done = [&] {
    if (sent < kCount || received < kCount) return false;
    for (const Message& message : messages) {
      if (!message.request.done) return false;
    }
    for (size_t g = 0; g < group; g++) {
      if (!groups[g].request.done) return false;
    }
    return true;
  };
  while (!done()) {
    ASSERT_FALSE(deadline.passed());
    for (size_t burst = below(12); burst > 0 && sent < kCount; burst--) {
      Message& message = messages[sent];
      bool accepted = false;
      const Status status =
          pair.a().sender->isend(message.data.data(), message.data.size(), message.tag,
                                 static_cast<uint32_t>(sent), nullptr, &message.request, &accepted);
      ASSERT_TRUE(status.ok()) << status.text();
      if (accepted) sent++;
    }
    for (size_t turns = below(3); turns > 0; turns--) pair.a().context->progress();
    for (size_t burst = below(6); burst > 0 && received < kCount; burst--) {
      Group& one = groups[group++];
      Buffer buffers[transport::kMaxGroupedReceives];
      const size_t count = std::min(kCount - received, below(3) == 0 ? 1 + below(8) : 1);
      for (size_t i = 0; i < count; i++) {
        Receive& receive = receives[received];
        buffers[i].data = receive.got.data();
        buffers[i].bytes = receive.got.size() - 1;
        buffers[i].tag = receive.tag;
        one.members.push_back(received++);
      }
      bool accepted = false;
      const Status status =
          pair.b().receiver->irecv(static_cast<int>(count), buffers, &one.request, &accepted);
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_TRUE(accepted);
    }
    for (size_t turns = below(3); turns > 0; turns--) pair.b().context->progress();
  }
  for (const Message& message : messages) {
    ASSERT_EQ(message.request.status, BITRAIL_OK) << message.request.text;
  }
  for (size_t g = 0; g < group; g++) {
    const Group& one = groups[g];
    bool misfit = false;
    for (size_t i = 0; i < one.members.size(); i++) {
      const Receive& receive = receives[one.members[i]];
      const std::vector<uint8_t>& data = messages[partner[one.members[i]]].data;
      const size_t capacity = receive.got.size() - 1;
      const bool fits = data.size() <= capacity;
      misfit |= !fits;
      ASSERT_EQ(one.request.received[i], fits ? data.size() : 0);
      const size_t filled = fits ? data.size() : 0;
      ASSERT_TRUE(std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(filled),
                             receive.got.begin()));
      for (size_t at = filled; at < receive.got.size(); at++) ASSERT_EQ(receive.got[at], 0xaa);
    }
    ASSERT_EQ(one.request.status, misfit ? BITRAIL_ERR_MISMATCH : BITRAIL_OK) << one.request.text;
    ASSERT_EQ(one.request.cookie, partner[one.members.back()]);
  }
  EXPECT_TRUE(pair.b().receiver->unexpected().empty());
  EXPECT_EQ(pair.world.fake().counters().waits_for_receive, 0U);
  EXPECT_EQ(pair.world.fake().counters().overruns, 0U);
}

}  // namespace
}  // namespace bitrail::test
