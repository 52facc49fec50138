// What goes over the wire: stripes of long messages, and devices that lose or repeat what they
// should report once. A connection may end by that, with a reason; data may not be wrong.
#include <arpa/inet.h>

#include <map>

#define TEST_OVER_VERBS 1
#include "runtime/transport/verbs/message.h"
#include "tests/transport/pair.h"

namespace bitrail::test {
namespace {

using transport::Request;
using transport::verbs::Immediate;
using transport::verbs::Signal;

Way one_port() {
  Way way{"verbs", "", 0, 0};
  way.ib.hca = "=mlx5_0";
  way.ib.keepalive_ms = 1;
  return way;
}

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Wrappers around the fake's functions; the tests are one at a time.
decltype(transport::verbs::Table::post_send) fake_post = nullptr;
decltype(transport::verbs::Table::poll_cq) fake_poll = nullptr;

struct Write {
  uint64_t begin, bytes;
  const ibv_qp* qp;
};
std::vector<Write> writes;  // without the rings' entries: those into the buffer
uint64_t buffer_begin = 0, buffer_end = 0;

int note_write(ibv_qp* qp, ibv_send_wr* work, ibv_send_wr** bad) {
  const uint64_t at = work->wr.rdma.remote_addr;
  if (work->num_sge > 0 && at >= buffer_begin && at < buffer_end) {
    writes.push_back({at - buffer_begin, work->sg_list[0].length, qp});
  }
  return fake_post(qp, work, bad);
}

class Stripes : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Apart, Stripes, testing::Bool());

TEST_P(Stripes, BeginAt128BytesAndCoverTheMessage) {
  Way way{"verbs", "", 0, 0};
  way.ib.qps_per_connection = 3;
  way.ib.split_data = true;
  way.ib.adaptive_routing = GetParam() ? "on" : "off";
  Pair pair(way);
  fake_post = pair.world.fake().table().post_send;
  pair.world.fake().table().post_send = note_write;
  for (const size_t bytes : {8193UL, 9000UL, 65'536UL, 100'001UL, 1'000'003UL}) {
    const std::vector<uint8_t> data = pattern(bytes, bytes);
    std::vector<uint8_t> got(bytes + 3);
    writes.clear();
    buffer_begin = reinterpret_cast<uint64_t>(got.data());
    buffer_end = buffer_begin + got.size();
    Request sending, receiving;
    receive(pair.b().receiver.get(), got.data(), got.size(), 1, &receiving);
    send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &sending);
    ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; }));
    ASSERT_TRUE(std::equal(data.begin(), data.end(), got.begin()));
    std::sort(writes.begin(), writes.end(),
              [](const Write& a, const Write& b) { return a.begin < b.begin; });
    uint64_t end = 0;
    std::map<const ibv_qp*, uint64_t> share;
    for (const Write& write : writes) {
      EXPECT_EQ(write.begin, end) << bytes;
      EXPECT_EQ(write.begin % 128, 0U) << bytes;
      end = write.begin + write.bytes;
      share[write.qp] += write.bytes;
    }
    EXPECT_EQ(end, bytes);
    EXPECT_EQ(share.size(), 9U) << bytes;  // three ports, three each
  }
  pair.world.fake().table().post_send = fake_post;
}

// What the device does with the completion that `meant` accepts, once.
enum class Trick { lose, repeat };
Trick trick = Trick::lose;
bool (*meant)(const ibv_wc&) = nullptr;

int play(ibv_cq* cq, int entries, ibv_wc* completions) {
  int count = fake_poll(cq, entries - 1, completions);  // room for one more
  for (int i = 0; i < count && meant != nullptr; i++) {
    if (!meant(completions[i])) continue;
    meant = nullptr;
    if (trick == Trick::lose) {
      std::copy(completions + i + 1, completions + count, completions + i);
      count--;
    } else {
      std::copy_backward(completions + i, completions + count, completions + count + 1);
      count++;
    }
  }
  return count;
}

bool is(const ibv_wc& completion, Signal signal) {
  Immediate immediate{};
  return completion.status == IBV_WC_SUCCESS && (completion.opcode & IBV_WC_RECV) != 0 &&
         parse_immediate(ntohl(completion.imm_data), &immediate) && immediate.signal == signal;
}
bool is_entry(const ibv_wc& completion) { return is(completion, Signal::entry); }
bool is_data(const ibv_wc& completion) { return is(completion, Signal::data); }
bool is_send(const ibv_wc& completion) {
  return completion.status == IBV_WC_SUCCESS && (completion.opcode & IBV_WC_RECV) == 0;
}

struct Case {
  const char* name;
  Trick trick;
  bool (*meant)(const ibv_wc&);
  bitrail_status_t status;
  const char* text;
};

class Tricks : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    All, Tricks,
    testing::Values(Case{"LosesAnEntry", Trick::lose, is_entry, BITRAIL_ERR_PROTOCOL, "an entry"},
                    Case{"RepeatsAnEntry", Trick::repeat, is_entry, BITRAIL_ERR_PROTOCOL,
                         "an entry"},
                    Case{"RepeatsData", Trick::repeat, is_data, BITRAIL_ERR_PROTOCOL, "data"},
                    Case{"LosesASend", Trick::lose, is_send, BITRAIL_ERR_SYSTEM, "not posted"},
                    Case{"RepeatsASend", Trick::repeat, is_send, BITRAIL_ERR_SYSTEM, "not posted"}),
    [](const auto& one) { return one.param.name; });

TEST_P(Tricks, EndTheConnectionAndNothingIsWrong) {
  Pair pair(one_port());
  pair.world.fake().set_retry_ns(2'000'000);
  fake_poll = pair.world.fake().table().poll_cq;
  pair.world.fake().table().poll_cq = play;
  trick = GetParam().trick;
  meant = GetParam().meant;
  constexpr int kMessages = 100;
  std::vector<std::vector<uint8_t>> data(kMessages), got(kMessages);
  std::vector<Request> sends(kMessages), receives(kMessages);
  std::vector<Status> reasons;
  for (int i = 0; i < kMessages && reasons.empty(); i++) {
    const size_t bytes = i % 2 == 0 ? 20'000 : 200;
    data[i] = pattern(bytes, static_cast<uint64_t>(i));
    got[i].resize(bytes);
    const transport::Buffer buffer{got[i].data(), bytes, 1, nullptr};
    bool taken[2] = {};
    const Status receiving = pair.b().receiver->irecv(1, &buffer, &receives[i], &taken[0]);
    const Status sending =
        pair.a().sender->isend(data[i].data(), bytes, 1, 0, nullptr, &sends[i], &taken[1]);
    for (const Status& status : {receiving, sending}) {
      if (!status.ok()) reasons.push_back(status);
    }
    for (int round = 0; round < 20; round++) {
      for (Side& side : pair.sides) side.context->progress();
    }
  }
  const auto done = [](const Request& one) { return one.done; };
  ASSERT_TRUE(pair.pump([&] {
    return std::all_of(receives.begin(), receives.end(), done) &&
           std::all_of(sends.begin(), sends.end(), done);
  }));
  EXPECT_EQ(meant, nullptr);  // it was played
  for (int i = 0; i < kMessages; i++) {
    if (receives[i].status == BITRAIL_OK && receives[i].received[0] > 0) {
      EXPECT_EQ(got[i], data[i]) << i;
    }
    for (const Request* request : {&receives[i], &sends[i]}) {
      if (request->status != BITRAIL_OK) reasons.emplace_back(request->status, request->text);
    }
  }
  bool told = false;
  std::string texts;
  for (const Status& reason : reasons) {
    EXPECT_TRUE(contains(reason.text(), "rank ")) << reason.text();
    told |= reason.code() == GetParam().status && contains(reason.text(), GetParam().text);
    texts += reason.text() + "\n";
  }
  EXPECT_TRUE(told) << texts;
  pair.world.fake().table().poll_cq = fake_poll;
}

// Deregistered with a receive pending, which no caller may do: the data do not land, both ends say
// why they end.
TEST(Memory, OfThePeerIsGone) {
  Pair pair(one_port());
  const std::vector<uint8_t> data = pattern(50'000, 1);
  std::vector<uint8_t> got(data.size());
  std::unique_ptr<transport::Memory> memory;
  ASSERT_TRUE(
      pair.b().context->register_memory(got.data(), got.size(), transport::kHost, &memory).ok());
  Request sending, receiving;
  const transport::Buffer buffer{got.data(), got.size(), 1, memory.get()};
  bool accepted = false;
  ASSERT_TRUE(pair.b().receiver->irecv(1, &buffer, &receiving, &accepted).ok());
  ASSERT_TRUE(accepted);
  memory.reset();
  send(pair.a().sender.get(), data.data(), data.size(), 1, 0, &sending);
  ASSERT_TRUE(pair.pump([&] { return sending.done && receiving.done; }));
  for (const Request* request : {&sending, &receiving}) {
    EXPECT_EQ(request->status, BITRAIL_ERR_PEER_LOST) << request->text;
    EXPECT_TRUE(contains(request->text, "rank ")) << request->text;
  }
  EXPECT_TRUE(contains(sending.text, "remote access error")) << sending.text;
  EXPECT_EQ(got, std::vector<uint8_t>(data.size()));
}

// Connections from each of forty devices, which several are used by.
TEST(Devices, FortyCarryMessages) {
  World world;
  for (int i = 3; i < 40; i++) {
    FakeDevice device;
    device.name = "mlx5_" + std::to_string(i);
    world.fake().add_device(device);
  }
  Side sides[2];
  const Way way{"verbs", "", 0, 0};
  for (int rank = 0; rank < 2; rank++) {
    const Status opened = transport::open(kTransport, options_for(way, rank), &sides[rank].context);
    ASSERT_TRUE(opened.ok()) << opened.text();
  }
  ASSERT_EQ(sides[0].context->devices(), 40);
  const Deadline deadline = Deadline::in_ms(kPatienceMs);
  for (int device = 0; device < 40; device++) {
    ASSERT_TRUE(sides[1].context->listen(device, &sides[1].handle, &sides[1].listener).ok());
    std::unique_ptr<transport::Context::Connecting> pending;
    while (sides[0].sender == nullptr || sides[1].receiver == nullptr) {
      ASSERT_FALSE(deadline.passed()) << "device " << device;
      if (sides[0].sender == nullptr) {
        const Status status = sides[0].context->connect(39 - device, sides[1].handle, {1}, deadline,
                                                        &pending, &sides[0].sender);
        ASSERT_TRUE(status.ok()) << status.text();
      }
      if (sides[1].receiver == nullptr) {
        ASSERT_TRUE(sides[1].listener->accept(&sides[1].receiver, &sides[1].peer).ok());
      }
      for (Side& side : sides) side.context->progress();
    }
    const std::vector<uint8_t> data = pattern(20'000, static_cast<uint64_t>(device));
    std::vector<uint8_t> got(data.size());
    Request sending, receiving;
    receive(sides[1].receiver.get(), got.data(), got.size(), 1, &receiving);
    send(sides[0].sender.get(), data.data(), data.size(), 1, 0, &sending);
    while (!(sending.done && receiving.done) && !deadline.passed()) {
      for (Side& side : sides) side.context->progress();
    }
    ASSERT_EQ(got, data) << "device " << device;
    sides[0].sender.reset();
    sides[1].receiver.reset();
  }
}

}  // namespace
}  // namespace bitrail::test
