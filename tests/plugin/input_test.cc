// Bad input: each call gives the code that NCCL expects, writes one line and changes nothing.
#include <sys/mman.h>

#include <algorithm>
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

TEST_P(Input, VirtualDevices) {
  if (GetParam() < 9) return;  // came with version 9
  int count = 0, device = -7;
  ASSERT_EQ(net_.devices(&count), kSuccess);
  nccl::VirtualDeviceV12 parts{1, {0}};
  ASSERT_EQ(net_.make_device(&device, &parts), kSuccess);
  EXPECT_EQ(device, 0);  // itself
  EXPECT_EQ(net_.make_device(&device, nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.make_device(nullptr, &parts), kInvalidArgument);
  expect_told();
  for (const nccl::VirtualDeviceV12& wrong : {nccl::VirtualDeviceV12{0, {}},
                                              {-1, {}},
                                              {5, {0}},
                                              {INT_MAX, {0}},
                                              {2, {0, 0}},
                                              {1, {count}},
                                              {1, {-1}},
                                              {2, {0, INT_MAX}}}) {
    parts = wrong;
    EXPECT_EQ(net_.make_device(&device, &parts), kInvalidArgument);
    expect_told();
  }
  int after = 0;
  ASSERT_EQ(net_.devices(&after), kSuccess);
  EXPECT_EQ(after, count);
}

// Where there are several: the whole has the parts' speed, one number, and carries messages.
TEST_P(Input, VirtualDeviceOfAll) {
  int count = 0, device = -1, again = -1;
  ASSERT_EQ(net_.devices(&count), kSuccess);
  if (GetParam() < 9) return;
  if (count < 2) GTEST_SKIP() << "one device: rdma/plugin has more";
  nccl::VirtualDeviceV12 parts{std::min(count, 4), {0, 1, 2, 3}};
  ASSERT_EQ(net_.make_device(&device, &parts), kSuccess);
  ASSERT_EQ(net_.make_device(&again, &parts), kSuccess);
  EXPECT_EQ(device, again);
  EXPECT_GE(device, count);
  int speed = 0;
  nccl::PropertiesV12 properties;
  for (int i = 0; i < parts.count; i++) {
    ASSERT_EQ(net_.get_properties(i, &properties), kSuccess);
    speed += properties.speed_mbps;
  }
  ASSERT_EQ(net_.get_properties(device, &properties), kSuccess);
  EXPECT_EQ(properties.speed_mbps, speed);
  EXPECT_EQ(properties.virtual_device.count, parts.count);
  EXPECT_NE(strchr(properties.name, '+'), nullptr) << properties.name;
  ASSERT_EQ(net_.close_listen(session_.listener), kSuccess);
  session_.listener = nullptr;
  ASSERT_EQ(net_.listen(session_.context, device, session_.handle.data(), &session_.listener),
            kSuccess);
  session_.device = device;
  session_.connect();
  std::vector<uint8_t> out(3 << 20, 0x5b), in(out.size());
  void* receiving = session_.receive(in.data(), in.size(), 1);
  void* sending = session_.send(out.data(), out.size(), 1);
  EXPECT_EQ(session_.finish(receiving), kSuccess);
  EXPECT_EQ(session_.finish(sending), kSuccess);
  EXPECT_EQ(in, out);
  const nccl::VirtualDeviceV12 of_virtual{2, {device, 0}};
  parts = of_virtual;
  EXPECT_EQ(net_.make_device(&again, &parts), kInvalidArgument);
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
  // The lists, and what one of the buffers is.
  request = &request;
  EXPECT_EQ(net_.irecv(session_.receiver, 2, nullptr, bytes, tags, memories, nullptr, &request),
            kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("NULL");
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, nullptr, memories, nullptr, &request),
            kInvalidArgument);
  expect_told("NULL");
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, nullptr),
            kInvalidArgument);
  expect_told();
  data[1] = nullptr;
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, &request),
            kInvalidArgument);
  expect_told("buffer 1");
  data[1] = place;
  bytes[1] = huge;
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, &request),
            kInvalidArgument);
  expect_told("bytes");
  if (GetParam() < 9) {  // negative as int
    bytes[1] = SIZE_MAX;
    EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, &request),
              kInvalidArgument);
    expect_told("bytes");
  }
  bytes[1] = 8;
  int sizes[2] = {8, -8};
  EXPECT_EQ(net_.iflush(session_.receiver, 2, data, sizes, memories, &request), kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("bytes");
  EXPECT_EQ(net_.iflush(session_.receiver, 2, nullptr, sizes, memories, &request),
            kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.isend(session_.sender, place, 8, INT_MIN, nullptr, nullptr, &request),
            kInvalidArgument);
  expect_told("tag");
  tags[1] = -5;
  EXPECT_EQ(net_.irecv(session_.receiver, 2, data, bytes, tags, memories, nullptr, &request),
            kInvalidArgument);
  expect_told("tag");
  int done = 5;
  EXPECT_EQ(net_.test(nullptr, &done, nullptr), kInvalidArgument);
  EXPECT_EQ(done, 0);
  expect_told();
  // One that was told done is none any more, nor is one without a place for the answer.
  void* sending = session_.send(place, 8, INT_MAX);  // the largest tag
  void* receiving = session_.receive(place, 8, INT_MAX);
  EXPECT_EQ(net_.test(receiving, nullptr, nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(session_.finish(receiving), kSuccess);
  EXPECT_EQ(session_.finish(sending), kSuccess);
  EXPECT_EQ(net_.test(sending, &done, nullptr), kInvalidArgument);
  expect_told("in flight");
}

// Memory of one communicator is not another's, nor is a registration that went.
TEST_P(ContextInput, MemoryOfAnotherCommunicator) {
  session_.connect();
  Session other(GetParam(), 9);
  other.connect();
  uint8_t place[64] = {};
  void* memory = nullptr;
  ASSERT_EQ(net_.register_memory(other.sender, place, 64, nccl::kPointerHost, &memory), kSuccess);
  void* request = &request;
  EXPECT_EQ(net_.isend(session_.sender, place, 8, 1, memory, nullptr, &request), kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("another communicator");
  EXPECT_EQ(net_.deregister_memory(session_.sender, memory), kInvalidArgument);
  expect_told();
  EXPECT_EQ(net_.deregister_memory(other.sender, memory), kSuccess);
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
  EXPECT_EQ(net_.deregister_memory(sender, memory), kInvalidArgument);
  expect_told("closed");
  void* data = place;
  size_t bytes = 8;
  int tag = 1, size = 8;
  request = &request;
  EXPECT_EQ(net_.irecv(receiver, 1, &data, &bytes, &tag, &memory, nullptr, &request),
            kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told("closed");
  EXPECT_EQ(net_.iflush(receiver, 1, &data, &size, &memory, &request), kInvalidArgument);
  expect_told("closed");
  // A listener is neither of the two.
  EXPECT_EQ(net_.isend(session_.listener, place, 8, 1, nullptr, nullptr, &request),
            kInvalidArgument);
  expect_told();
  ASSERT_EQ(net_.close_listen(session_.listener), kSuccess);
  void* accepted = &accepted;
  EXPECT_EQ(net_.accept(session_.listener, &accepted), kInvalidArgument);
  EXPECT_EQ(accepted, nullptr);
  expect_told("closed");
  EXPECT_EQ(net_.close_listen(session_.listener), kInvalidArgument);
  expect_told("closed");
  ASSERT_EQ(net_.listen(session_.context, 0, session_.handle.data(), &session_.listener), kSuccess);
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
