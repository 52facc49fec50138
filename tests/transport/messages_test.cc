// What every transport has to do with messages: sizes, order, tags, matching, truncation, groups.
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Buffer;
using transport::Request;

class Messages : public testing::TestWithParam<Way> {};

INSTANTIATE_TEST_SUITE_P(Transports, Messages, testing::ValuesIn(ways()), way_name);

TEST_P(Messages, AllSizesBothOrdersOfPosting) {
  Pair pair(GetParam());
  for (const size_t bytes :
       {size_t{0}, size_t{1}, size_t{8}, size_t{100}, size_t{4096}, size_t{16384}, size_t{16385},
        size_t{65536}, size_t{65537}, size_t{1} << 20, (size_t{16} << 20) + 3}) {
    for (const bool posted_first : {true, false}) {
      const std::vector<uint8_t> data = pattern(bytes, bytes);
      std::vector<uint8_t> got(bytes + 1, 0xaa);
      Request sending, receiving;
      if (posted_first) receive(pair.b().receiver.get(), got.data(), bytes, 7, &receiving);
      send(pair.a().sender.get(), data.data(), bytes, 7, 5, &sending);
      if (!posted_first) {
        ASSERT_TRUE(pair.pump([&] { return !pair.b().receiver->unexpected().empty(); }));
        const auto unexpected = pair.b().receiver->unexpected();
        ASSERT_EQ(unexpected.size(), 1U);
        EXPECT_EQ(unexpected[0].bytes, bytes);
        EXPECT_EQ(unexpected[0].cookie, 5U);
        receive(pair.b().receiver.get(), got.data(), bytes, 7, &receiving);
      }
      ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; })) << bytes;
      EXPECT_EQ(sending.status, BITRAIL_OK) << sending.text;
      EXPECT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
      EXPECT_EQ(receiving.received[0], bytes);
      EXPECT_EQ(receiving.cookie, 5U);
      EXPECT_TRUE(std::equal(data.begin(), data.end(), got.begin())) << bytes;
      EXPECT_EQ(got.back(), 0xaa);
    }
  }
}

// Equal tags match in posting order whatever way each size takes through the transport.
TEST_P(Messages, OrderWithinATag) {
  Pair pair(GetParam());
  constexpr int kCount = 200;
  const size_t sizes[] = {8, 70'000, 0, 20'000, 300, 9'000, 150'000, 1};
  std::vector<std::vector<uint8_t>> data(kCount), got(kCount);
  std::vector<Request> sends(kCount), receives(kCount);
  for (int i = 0; i < kCount; i++) {
    const size_t bytes = sizes[i % 8];
    data[i] = pattern(bytes, static_cast<uint64_t>(i));
    got[i].resize(bytes);
    send(pair.a().sender.get(), data[i].data(), bytes, 42, static_cast<uint32_t>(i), &sends[i]);
    if (i % 3 == 0) pair.b().context->progress();
    if (i >= kCount / 2) {
      const int j = i - kCount / 2;
      receive(pair.b().receiver.get(), got[j].data(), got[j].size(), 42, &receives[j]);
    }
  }
  for (int j = kCount / 2; j < kCount; j++) {
    receive(pair.b().receiver.get(), got[j].data(), got[j].size(), 42, &receives[j]);
  }
  ASSERT_TRUE(pair.pump([&] {
    for (int i = 0; i < kCount; i++) {
      if (!sends[i].done || !receives[i].done) return false;
    }
    return true;
  }));
  for (int i = 0; i < kCount; i++) {
    ASSERT_EQ(receives[i].status, BITRAIL_OK) << receives[i].text;
    ASSERT_EQ(receives[i].cookie, static_cast<uint32_t>(i));
    ASSERT_EQ(got[i], data[i]) << i;
  }
}

TEST_P(Messages, TagsHave64Bits) {
  Pair pair(GetParam());
  const uint64_t tags[] = {0, 1, 1ULL << 32, 1ULL << 63, ~0ULL, ~0ULL - 1};
  uint64_t sent[6], got[6] = {};
  Request sends[6], receives[6];
  for (int i = 0; i < 6; i++) {
    sent[i] = tags[i] ^ 0x55;
    receive(pair.b().receiver.get(), &got[i], 8, tags[i], &receives[i]);
  }
  for (int i = 5; i >= 0; i--) {
    send(pair.a().sender.get(), &sent[i], 8, tags[i], 0, &sends[i]);
  }
  ASSERT_TRUE(pair.pump([&] {
    for (int i = 0; i < 6; i++) {
      if (!sends[i].done || !receives[i].done) return false;
    }
    return true;
  }));
  for (int i = 0; i < 6; i++) EXPECT_EQ(got[i], sent[i]);
}

TEST_P(Messages, GroupedReceivesFillInAnyOrder) {
  Pair pair(GetParam());
  constexpr int kGroup = transport::kMaxGroupedReceives;
  const size_t sizes[kGroup] = {8, 100'000, 0, 40'000, 17, 3'000'000, 1, 12'000};
  std::vector<uint8_t> data[kGroup], got[kGroup];
  Buffer buffers[kGroup];
  for (int i = 0; i < kGroup; i++) {
    data[i] = pattern(sizes[i], static_cast<uint64_t>(i));
    got[i].resize(sizes[i] + 10);
    buffers[i].data = got[i].data();
    buffers[i].bytes = got[i].size();
    buffers[i].tag = 100 + static_cast<uint64_t>(i);
  }
  Request receiving, sends[kGroup];
  // Half of them arrive before the receive is posted.
  for (const int i : {7, 1, 0, 5}) {
    send(pair.a().sender.get(), data[i].data(), sizes[i], 100U + static_cast<uint64_t>(i), 1,
         &sends[i]);
  }
  ASSERT_TRUE(pair.pump([&] { return pair.b().receiver->unexpected().size() == 4; }));
  bool accepted = false;
  ASSERT_TRUE(pair.b().receiver->irecv(kGroup, buffers, &receiving, &accepted).ok());
  ASSERT_TRUE(accepted);
  for (const int i : {6, 4, 3}) {
    send(pair.a().sender.get(), data[i].data(), sizes[i], 100U + static_cast<uint64_t>(i), 1,
         &sends[i]);
  }
  ASSERT_TRUE(pair.pump([&] { return sends[6].done && sends[4].done && sends[3].done; }));
  EXPECT_FALSE(receiving.done);
  send(pair.a().sender.get(), data[2].data(), sizes[2], 102, 1, &sends[2]);
  ASSERT_TRUE(pair.pump([&] {
    for (const Request& request : sends) {
      if (!request.done) return false;
    }
    return receiving.done;
  }));
  EXPECT_EQ(receiving.status, BITRAIL_OK) << receiving.text;
  for (int i = 0; i < kGroup; i++) {
    EXPECT_EQ(receiving.received[i], sizes[i]);
    EXPECT_TRUE(std::equal(data[i].begin(), data[i].end(), got[i].begin())) << i;
  }
}

TEST_P(Messages, ShorterIsFineLongerIsRefusedAndTheConnectionGoesOn) {
  Pair pair(GetParam());
  for (const size_t bytes : {size_t{100}, size_t{40'000}, size_t{1'000'000}}) {
    for (const bool posted_first : {true, false}) {
      const std::vector<uint8_t> data = pattern(bytes, 3);
      std::vector<uint8_t> got(bytes, 0xaa), roomy(bytes + 50, 0xaa);
      Request sends[2], tight, wide;
      if (posted_first) {
        receive(pair.b().receiver.get(), got.data(), bytes - 1, 1, &tight);
        receive(pair.b().receiver.get(), roomy.data(), bytes + 50, 1, &wide);
      }
      for (Request& request : sends) {
        send(pair.a().sender.get(), data.data(), bytes, 1, 0, &request);
      }
      if (!posted_first) {
        ASSERT_TRUE(pair.pump([&] { return pair.b().receiver->unexpected().size() == 2; }));
        receive(pair.b().receiver.get(), got.data(), bytes - 1, 1, &tight);
        receive(pair.b().receiver.get(), roomy.data(), bytes + 50, 1, &wide);
      }
      ASSERT_TRUE(pair.pump([&] {
        return sends[0].done && sends[1].done && tight.done && wide.done;
      })) << bytes;
      EXPECT_EQ(tight.status, BITRAIL_ERR_MISMATCH);
      EXPECT_NE(tight.text.find(std::to_string(bytes)), std::string::npos) << tight.text;
      EXPECT_EQ(std::count(got.begin(), got.end(), 0xaa), static_cast<std::ptrdiff_t>(bytes));
      EXPECT_EQ(sends[0].status, BITRAIL_OK) << sends[0].text;
      EXPECT_EQ(wide.status, BITRAIL_OK) << wide.text;
      EXPECT_EQ(wide.received[0], bytes);
      EXPECT_TRUE(std::equal(data.begin(), data.end(), roomy.begin()));
      EXPECT_EQ(roomy.back(), 0xaa);
    }
  }
}

TEST_P(Messages, RefusesMoreThanItsSlotsAndTakesThemLater) {
  Pair pair(GetParam());
  constexpr int kCount = 5000;
  const std::vector<uint8_t> data = pattern(100'000, 1);
  std::vector<uint8_t> got(data.size());
  std::vector<Request> sends(kCount), receives(kCount);
  int sent = 0;
  bool accepted = true;
  for (; sent < kCount && accepted; sent += accepted ? 1 : 0) {
    const Status status =
        pair.a().sender->isend(data.data(), data.size(), 1, 0, nullptr, &sends[sent], &accepted);
    ASSERT_TRUE(status.ok()) << status.text();
  }
  ASSERT_LT(sent, kCount);
  ASSERT_GE(sent, 32);
  EXPECT_TRUE(sends[sent].done);  // not accepted: not touched
  for (int i = 0; i <= sent; i++) {
    receive(pair.b().receiver.get(), got.data(), got.size(), 1, &receives[i]);
    ASSERT_TRUE(pair.pump([&] { return receives[i].done; })) << i;
    ASSERT_EQ(receives[i].status, BITRAIL_OK) << receives[i].text;
    if (i == 0) {
      ASSERT_TRUE(pair.pump([&] {
        const Status status = pair.a().sender->isend(data.data(), data.size(), 1, 0, nullptr,
                                                     &sends[sent], &accepted);
        return status.ok() && accepted;
      }));
    }
  }
  EXPECT_EQ(got, data);
  ASSERT_TRUE(pair.pump([&] { return sends[static_cast<size_t>(sent)].done; }));
}

TEST_P(Messages, BothWaysAtOnceWithCallbacks) {
  Pair pair(GetParam());
  constexpr int kCount = 50;
  const std::vector<uint8_t> data = pattern(50'000, 9);
  std::vector<std::vector<uint8_t>> got(2 * kCount, std::vector<uint8_t>(data.size()));
  std::vector<Request> requests(4 * kCount);
  int done = 0;
  for (Request& request : requests) {
    request.user = &done;
    request.on_done = [](Request* self) { ++*static_cast<int*>(self->user); };
  }
  for (int i = 0; i < kCount; i++) {
    for (int s = 0; s < 2; s++) {
      const int index = 2 * i + s;
      receive(pair.sides[s].receiver.get(), got[index].data(), data.size(), 1,
              &requests[2 * index]);
      send(pair.sides[s].sender.get(), data.data(), data.size(), 1, 0, &requests[2 * index + 1]);
    }
  }
  ASSERT_TRUE(pair.pump([&] { return done == 4 * kCount; }));
  for (const auto& buffer : got) ASSERT_EQ(buffer, data);
}

TEST_P(Messages, ArgumentsAreChecked) {
  Pair pair(GetParam());
  Buffer buffers[9];
  Request request;
  bool accepted = true;
  EXPECT_EQ(pair.b().receiver->irecv(9, buffers, &request, &accepted).code(),
            BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(pair.b().receiver->irecv(0, buffers, &request, &accepted).code(),
            BITRAIL_ERR_INVALID_ARGUMENT);
  EXPECT_FALSE(accepted);
  EXPECT_EQ(pair.a().peer.rank, 1);
  EXPECT_EQ(pair.b().peer.rank, 0);
  EXPECT_NE(pair.a().sender->peer_address().find("rank 1"), std::string::npos);
}

}  // namespace
}  // namespace bitrail::test
