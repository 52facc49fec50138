// Bad input: each call gives the code that NCCL expects, writes one line and changes nothing.
#include <sys/mman.h>

#include <climits>
#include <cstring>
#include <random>

#include "tests/plugin/session.h"

namespace bitrail::test {
namespace {

using nccl::kInvalidArgument;
using nccl::kRemoteError;
using nccl::kSuccess;

class Input : public testing::TestWithParam<int> {
 protected:
  Input() : session_(GetParam()), net_(*session_.net) { take_warnings(); }

  // One line was written since the last look.
  static void expect_told(const char* part = "") {
    const std::vector<std::string> warnings = take_warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  }
  nccl::Result connect_to(const Handle& handle) {
    Handle copy = handle;
    void* comm = &copy;
    nccl::Result result = kSuccess;
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    while (result == kSuccess && !deadline.passed()) {
      result = net_.connect(session_.context, 0, copy.data(), &comm);
      EXPECT_EQ(comm, nullptr);
      if (comm != nullptr) return net_.close_send(comm);
      void* receiver = nullptr;
      (void)net_.accept(session_.listener, &receiver);
      EXPECT_EQ(receiver, nullptr);
    }
    return result;
  }

  Session session_;
  Net& net_;
};
INSTANTIATE_TEST_SUITE_P(Versions, Input, all_versions(), version_name);

// What communicators with a context of their own add.
class ContextInput : public Input {};
INSTANTIATE_TEST_SUITE_P(Versions, ContextInput, testing::Range(11, kNewest + 1), version_name);

TEST_P(Input, ForeignHandles) {
  Handle handle{};
  EXPECT_EQ(connect_to(handle), kRemoteError);  // zeros: nothing was written there
  expect_told("NCCL_NET_PLUGIN");
  handle.fill(0xff);
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("NCCL_NET_PLUGIN");
  handle = session_.handle;
  handle[4] ^= 0x40;
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("version");
  handle = session_.handle;
  handle[16] ^= 1;  // the transport's magic
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told();
  handle = session_.handle;
  handle[22] ^= 3;  // the transport's kind
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("BITRAIL_TRANSPORT");
}

TEST_P(ContextInput, HandleOfAnotherJob) {
  const Session other(GetParam(), 8);
  EXPECT_EQ(connect_to(other.handle), kRemoteError);
  expect_told("another job");
}

TEST_P(Input, StaleHandle) {
  Handle handle;
  void* listener = nullptr;
  ASSERT_EQ(net_.listen(session_.context, 0, handle.data(), &listener), kSuccess);
  ASSERT_EQ(net_.close_listen(listener), kSuccess);
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told();
}

TEST_P(Input, NullsInSetUp) {
  void* comm = &comm;
  EXPECT_EQ(net_.connect(session_.context, 0, nullptr, &comm), kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  expect_told();
  EXPECT_EQ(net_.connect(session_.context, 0, session_.handle.data(), nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.listen(session_.context, 0, nullptr, &comm), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.listen(session_.context, 0, session_.handle.data(), nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.accept(nullptr, &comm), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.accept(session_.listener, nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.devices(nullptr), kInvalidArgument);
  expect_told();
}

TEST_P(Input, DevicesOutOfRange) {
  nccl::PropertiesV12 properties;
  for (const int device : {-1, 1000, INT_MAX, INT_MIN}) {
    void* comm = nullptr;
    Handle handle = session_.handle;
    EXPECT_EQ(net_.get_properties(device, &properties), kInvalidArgument);
    expect_told("device");
    EXPECT_EQ(net_.listen(session_.context, device, handle.data(), &comm), kInvalidArgument);
    expect_told("device");
    EXPECT_EQ(net_.connect(session_.context, device, handle.data(), &comm), kInvalidArgument);
    expect_told("device");
  }
  EXPECT_EQ(net_.get_properties(0, nullptr), kInvalidArgument);
  expect_told();
}

TEST_P(ContextInput, FinalizedContext) {
  void* context = nullptr;
  ASSERT_EQ(net_.init(&context, 1), kSuccess);
  ASSERT_EQ(net_.finalize(context), kSuccess);
  void* comm = nullptr;
  Handle handle = session_.handle;
  EXPECT_EQ(net_.listen(context, 0, handle.data(), &comm), kInvalidArgument);
  expect_told("finalized");
  EXPECT_EQ(net_.connect(nullptr, 0, handle.data(), &comm), kInvalidArgument);
  expect_told();
}

TEST_P(Input, Registrations) {
  session_.connect();
  void* memory = &memory;
  EXPECT_EQ(net_.register_memory(session_.sender, nullptr, 4096, nccl::kPointerHost, &memory),
            kInvalidArgument);
  EXPECT_EQ(memory, nullptr);
  expect_told("NULL");
  constexpr size_t kPage = 4096;
  auto* pages = static_cast<uint8_t*>(
      mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(pages), MAP_FAILED);
  munmap(pages + kPage, kPage);
  EXPECT_EQ(net_.register_memory(session_.sender, pages, 2 * kPage, nccl::kPointerHost, &memory),
            kInvalidArgument);
  expect_told("not mapped");
  EXPECT_EQ(net_.register_memory(session_.sender, pages, INT_MAX, nccl::kPointerHost, &memory),
            kInvalidArgument);
  expect_told("not mapped");
  if (GetParam() >= 8) {
    EXPECT_EQ(net_.register_memory(session_.sender, pages, SIZE_MAX, nccl::kPointerHost, &memory),
              kInvalidArgument);
    expect_told("not mapped");
  }
  EXPECT_EQ(net_.register_memory(session_.sender, pages, kPage, 0, &memory), kInvalidArgument);
  expect_told("type");
  EXPECT_EQ(net_.register_memory(session_.sender, pages, kPage, nccl::kPointerHost, nullptr),
            kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.register_memory(nullptr, pages, kPage, nccl::kPointerHost, &memory),
            kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.deregister_memory(session_.sender, pages), kInvalidArgument);
  expect_told();
  // Unaligned ones are fine.
  ASSERT_EQ(net_.register_memory(session_.sender, pages + 3, 17, nccl::kPointerHost, &memory),
            kSuccess);
  EXPECT_EQ(net_.deregister_memory(session_.receiver, memory), kSuccess);
  EXPECT_EQ(net_.deregister_memory(session_.sender, memory), kInvalidArgument);
  expect_told();
  munmap(pages, kPage);
  munmap(pages + 2 * kPage, kPage);
}

TEST_P(Input, SizesTagsAndCounts) {
  session_.connect();
  uint8_t place[64] = {};
  void* request = &request;
  EXPECT_EQ(net_.isend(session_.sender, place, 8, -1, nullptr, nullptr, &request),
            kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("tag");
  EXPECT_EQ(net_.isend(session_.sender, nullptr, 8, 1, nullptr, nullptr, &request),
            kInvalidArgument);
  expect_told("NULL");
  const size_t huge = GetParam() < 9 ? size_t{INT_MAX} : size_t{1} << 40;
  EXPECT_EQ(net_.isend(session_.sender, place, huge, 1, nullptr, nullptr, &request),
            kInvalidArgument);
  expect_told("bytes");
  if (GetParam() < 9) {  // negative as int
    EXPECT_EQ(net_.isend(session_.sender, place, SIZE_MAX, 1, nullptr, nullptr, &request),
              kInvalidArgument);
    expect_told("bytes");
  }
  EXPECT_EQ(net_.isend(session_.sender, place, 8, 1, nullptr, nullptr, nullptr), kInvalidArgument);
  expect_told();
  void* data[16] = {place, place};
  size_t bytes[16] = {8, 8};
  int tags[16] = {1, 2};
  void* memories[16] = {};
  for (const int count : {0, -1, 9, INT_MAX}) {
    request = &request;
    EXPECT_EQ(net_.irecv(session_.receiver, count, data, bytes, tags, memories, nullptr, &request),
              kInvalidArgument);
    EXPECT_EQ(request, nullptr);
    expect_told("buffers");
    int sizes[16] = {8, 8};
    EXPECT_EQ(net_.iflush(session_.receiver, count, data, sizes, memories, &request),
              kInvalidArgument);
    expect_told("buffers");
  }
  tags[1] = -5;
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, &request),
            kInvalidArgument);
  expect_told("tag");
  int done = 5;
  EXPECT_EQ(net_.test(nullptr, &done, nullptr), kInvalidArgument);
  EXPECT_EQ(done, 0);
  expect_told();
}

TEST_P(Input, MessageLongerThanItsReceive) {
  session_.connect();
  uint8_t out[200] = {}, in[100] = {};
  void* send = session_.send(out, sizeof(out), 4);
  void* receive = session_.receive(in, sizeof(in), 4);
  EXPECT_EQ(session_.finish(receive), kRemoteError);
  expect_told("200");
  EXPECT_EQ(session_.finish(send), kSuccess);
  // The connection goes on.
  send = session_.send(out, 50, 4);
  receive = session_.receive(in, sizeof(in), 4);
  int size[2] = {-1, -1};
  EXPECT_EQ(session_.finish(receive, size), kSuccess);
  EXPECT_EQ(size[0], 50);
  EXPECT_EQ(session_.finish(send), kSuccess);
}

TEST_P(Input, ClosedComms) {
  session_.connect();
  uint8_t place[64] = {};
  void* pending = session_.receive(place, sizeof(place), 9);
  ASSERT_NE(pending, nullptr);
  void* sender = session_.sender;
  void* receiver = session_.receiver;
  ASSERT_EQ(net_.close_send(sender), kSuccess);
  ASSERT_EQ(net_.close_receive(receiver), kSuccess);
  session_.sender = session_.receiver = nullptr;
  take_warnings();
  void* request = &request;
  EXPECT_EQ(net_.isend(sender, place, 8, 1, nullptr, nullptr, &request), kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("closed");
  int done = 3;
  EXPECT_EQ(net_.test(pending, &done, nullptr), kInvalidArgument);
  EXPECT_EQ(done, 0);
  expect_told("closed");
  void* memory = nullptr;
  EXPECT_EQ(net_.register_memory(receiver, place, 8, nccl::kPointerHost, &memory),
            kInvalidArgument);
  expect_told("closed");
  EXPECT_EQ(net_.close_send(sender), kInvalidArgument);
  expect_told("closed");
  EXPECT_EQ(net_.close_receive(nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.close_receive(session_.listener), kInvalidArgument);  // of another kind
  expect_told("kind");
}

// isend takes it all the same; what becomes of it is told by test, and closing does not hang.
TEST_P(Input, PeerThatClosed) {
  session_.connect();
  std::vector<uint8_t> large(8 << 20);
  ASSERT_EQ(net_.close_receive(session_.receiver), kSuccess);
  session_.receiver = nullptr;
  take_warnings();
  void* request = nullptr;
  ASSERT_EQ(net_.isend(session_.sender, large.data(), large.size(), 1, nullptr, nullptr, &request),
            kSuccess);
  ASSERT_NE(request, nullptr);
  const nccl::Result result = session_.finish(request, nullptr, 300);
  EXPECT_NE(result, kInvalidArgument);
  const int64_t begin = now_ns();
  EXPECT_EQ(net_.close_send(session_.sender), kSuccess);
  session_.sender = nullptr;
  EXPECT_LT(now_ns() - begin, kPatienceMs * 1'000'000);
}

TEST_P(Input, MoreRequestsThanThereAre) {
  session_.connect();
  uint8_t place[8] = {};
  std::vector<void*> requests;
  for (int i = 0; i < 1000; i++) {
    void* request = session_.receive(place, sizeof(place), 1);
    if (request == nullptr) break;
    requests.push_back(request);
  }
  EXPECT_GE(requests.size(), 32U * 8);
  EXPECT_LT(requests.size(), 1000U);
  EXPECT_TRUE(take_warnings().empty());
  for (size_t i = 0; i < requests.size(); i++) {
    void* send = session_.send(place, sizeof(place), 1);
    EXPECT_EQ(session_.finish(requests[i]), kSuccess);
    EXPECT_EQ(session_.finish(send), kSuccess);
  }
  EXPECT_NE(session_.receive(place, sizeof(place), 1), nullptr);
}

}  // namespace
}  // namespace bitrail::test
