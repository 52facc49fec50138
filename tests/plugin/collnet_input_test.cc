// Bad input to CollNet: each call gives the code that NCCL expects, writes one line and changes
// nothing. And CollNet that nobody asked for.
#include <climits>
#include <cstring>
#include <vector>

#include "tests/plugin/collnet/room.h"
#include "tests/plugin/driver/net.h"

namespace bitrail::test {
namespace {

using nccl::kInvalidArgument;
using nccl::kRemoteError;
using nccl::kSuccess;

std::string version_name(const testing::TestParamInfo<int>& version) {
  return fmt::format("v{}", version.param);
}

// One rank alone, listening and not.
class CollInput : public testing::TestWithParam<int> {
 protected:
  void open(const char* mode) {
    const Variable on("BITRAIL_COLLNET", mode);
    Boards boards(1);
    end_.join(coll_.get(), 1, 0, 7, &boards[0], 60'000);
    ASSERT_EQ(coll_->listen(end_.context, 0, handle_.data(), &listener_), kSuccess);
    take_warnings();
  }
  ~CollInput() override {
    if (listener_ != nullptr) {
      EXPECT_EQ(coll_->close_listen(listener_), kSuccess);
    }
    take_warnings();
  }
  // One line was written since the last look.
  static void expect_told(const char* part = "") {
    const std::vector<std::string> warnings = take_warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find(part), std::string::npos) << warnings[0];
  }
  // Of two ranks, the other one's handle is this.
  nccl::Result connect_to(const Handle& other) {
    Handle own, copy = other;
    void* listener = nullptr;
    void* comm = &own;
    EXPECT_EQ(coll_->listen(end_.context, 0, own.data(), &listener), kSuccess);
    void* handles[] = {own.data(), copy.data()};
    const nccl::Result result = coll_->connect(handles, 2, 0, listener, &comm);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(coll_->close_listen(listener), kSuccess);
    return result;
  }
  nccl::Result reduce(void* send, void* receive, size_t count, int type = nccl::kFloat32,
                      int operation = nccl::kSum, void* memory = nullptr) {
    void* request = this;
    const nccl::Result result = coll_->iallreduce(end_.comm, send, receive, count, type, operation,
                                                  memory, memory, &request);
    EXPECT_EQ(request, nullptr);
    return result;
  }

  std::unique_ptr<Coll> coll_ = coll_of(GetParam());
  CollRank end_;
  Handle handle_{};
  void* listener_ = nullptr;
  std::vector<float> values_ = std::vector<float>(1000, 1);
};
INSTANTIATE_TEST_SUITE_P(Versions, CollInput, all_coll_versions(), version_name);

TEST_P(CollInput, OffUnlessAsked) {
  void* context = nullptr;
  int count = -1, supported = -1;
  ASSERT_EQ(coll_->init(&context, 1), kSuccess);
  EXPECT_EQ(coll_->devices(&count), kSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(coll_->reduce_support(nccl::kFloat32, nccl::kSum, &supported), kSuccess);
  EXPECT_EQ(supported, 0);
  nccl::PropertiesV11 properties;
  EXPECT_EQ(coll_->get_properties(0, &properties), kInvalidArgument);
  EXPECT_EQ(coll_->listen(context, 0, handle_.data(), &listener_), kInvalidArgument);
  EXPECT_EQ(listener_, nullptr);
  EXPECT_EQ(coll_->finalize(context), kSuccess);
}

TEST_P(CollInput, UnusableSettingGivesNoDevice) {
  const Variable on("BITRAIL_COLLNET", "twobit");
  void* context = nullptr;
  int count = -1;
  ASSERT_EQ(coll_->init(&context, 1), kSuccess);
  expect_told("BITRAIL_COLLNET");
  EXPECT_EQ(coll_->devices(&count), kSuccess);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(coll_->finalize(context), kSuccess);
}

TEST_P(CollInput, ReduceSupport) {
  for (const bool onebit : {false, true}) {
    open(onebit ? "onebit" : "exact");
    for (int type = -1; type <= 12; type++) {
      for (int operation = -1; operation <= 5; operation++) {
        const bool sixteen = type == nccl::kFloat16 || type == nccl::kBfloat16;
        const bool known = type == nccl::kUint8 || type == nccl::kInt32 || type == nccl::kInt64 ||
                           sixteen || type == nccl::kFloat32 || type == nccl::kFloat64;
        const bool exact = known && (operation == nccl::kSum || operation == nccl::kMin ||
                                     operation == nccl::kMax);
        const bool compressed = operation == nccl::kSum && (sixteen || type == nccl::kFloat32);
        int supported = -1;
        EXPECT_EQ(coll_->reduce_support(type, operation, &supported), kSuccess);
        EXPECT_EQ(supported == 1, onebit ? compressed : exact) << type << " " << operation;
        if (supported == 1) continue;
        EXPECT_EQ(reduce(values_.data(), values_.data(), 10, type, operation), kInvalidArgument);
        expect_told("reduceSupport");
      }
    }
    EXPECT_EQ(coll_->reduce_support(nccl::kFloat32, nccl::kSum, nullptr), kInvalidArgument);
    EXPECT_EQ(coll_->close_listen(listener_), kSuccess);
    EXPECT_EQ(coll_->close_coll(end_.comm), kSuccess);
    EXPECT_EQ(coll_->finalize(end_.context), kSuccess);
    listener_ = end_.comm = end_.context = nullptr;
  }
}

TEST_P(CollInput, Properties) {
  open("exact");
  nccl::PropertiesV11 properties;
  ASSERT_EQ(coll_->get_properties(0, &properties), kSuccess);
  EXPECT_STRNE(properties.name, nullptr);
  EXPECT_EQ(properties.pointer_support, nccl::kPointerHost);
  EXPECT_EQ(properties.max_collective_bytes, size_t{512} << 20);
  EXPECT_STREQ(coll_->name(), "BitRail");
  for (const int device : {-1, 1, INT_MAX, INT_MIN}) {
    void* comm = this;
    EXPECT_EQ(coll_->get_properties(device, &properties), kInvalidArgument);
    expect_told("device");
    EXPECT_EQ(coll_->listen(end_.context, device, handle_.data(), &comm), kInvalidArgument);
    EXPECT_EQ(comm, nullptr);
    expect_told("device");
  }
  EXPECT_EQ(coll_->get_properties(0, nullptr), kInvalidArgument);
  expect_told();
}

TEST_P(CollInput, BadHandles) {
  open("exact");
  Handle handle{};
  EXPECT_EQ(connect_to(handle), kRemoteError);  // zeros: nothing was written there
  expect_told("rank 1");
  handle.fill(0xff);
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("BITRAIL_COLLNET");
  for (const auto& [place, part] : {std::pair{4, "version"}, {7, "sense"}, {8, "communicator"}}) {
    handle = handle_;
    handle[static_cast<size_t>(place)] ^= 0x40;
    EXPECT_EQ(connect_to(handle), kRemoteError);
    expect_told(part);
  }
  handle = handle_;
  handle[6] ^= 3;  // exact becomes onebit
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("rank 1");
  handle = handle_;
  handle[34] = 5;  // the family of the first address
  EXPECT_EQ(connect_to(handle), kRemoteError);
  expect_told("sense");
}

TEST_P(CollInput, BadConnects) {
  open("exact");
  void* comm = this;
  void* good[] = {handle_.data(), handle_.data()};
  void* bad[] = {handle_.data(), nullptr};
  EXPECT_EQ(coll_->connect(good, 2, 0, listener_, nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(coll_->connect(nullptr, 2, 0, listener_, &comm), kInvalidArgument);
  EXPECT_EQ(comm, nullptr);
  expect_told();
  EXPECT_EQ(coll_->connect(good, 2, 0, nullptr, &comm), kInvalidArgument);
  expect_told();
  for (const auto& [ranks, rank] : {std::pair{0, 0}, {2, 2}, {2, -1}, {-1, 0}, {INT_MAX, 0}}) {
    EXPECT_EQ(coll_->connect(good, ranks, rank, listener_, &comm), kInvalidArgument);
    expect_told("rank");
  }
  EXPECT_EQ(coll_->connect(bad, 2, 0, listener_, &comm), kInvalidArgument);
  expect_told("rank 1");
  EXPECT_EQ(coll_->connect(good, 2, 0, listener_, &comm), kInvalidArgument);
  expect_told("before");
  // A listen comm that the handle at this rank's place is not of.
  Handle other;
  void* listener = nullptr;
  ASSERT_EQ(coll_->listen(end_.context, 0, other.data(), &listener), kSuccess);
  EXPECT_EQ(coll_->connect(good, 1, 0, listener, &comm), kInvalidArgument);
  expect_told("place 0");
  EXPECT_EQ(coll_->close_listen(listener), kSuccess);
}

TEST_P(CollInput, BadRegistrations) {
  open("exact");
  void* memory = this;
  const auto refused = [&](void* data, size_t bytes, int type) {
    EXPECT_EQ(coll_->register_memory(end_.comm, data, bytes, type, &memory), kInvalidArgument);
    EXPECT_EQ(memory, nullptr);
    expect_told();
  };
  refused(nullptr, 10, nccl::kPointerHost);
  refused(values_.data(), 0, nccl::kPointerHost);
  refused(values_.data(), SIZE_MAX, nccl::kPointerHost);
  refused(values_.data(), size_t{1} << 46, nccl::kPointerHost);
  refused(values_.data(), 10, nccl::kPointerCuda);
  refused(values_.data(), 10, 9);
  EXPECT_EQ(coll_->deregister_memory(end_.comm, values_.data()), kInvalidArgument);
  expect_told();
  EXPECT_EQ(coll_->deregister_memory(end_.comm, nullptr), kInvalidArgument);
  expect_told();
  EXPECT_EQ(coll_->register_memory(end_.comm, values_.data(), 10, nccl::kPointerHost, nullptr),
            kInvalidArgument);
  expect_told();
}

TEST_P(CollInput, BadReductions) {
  open("exact");
  float* data = values_.data();
  void* memory = end_.register_floats(values_);
  EXPECT_EQ(reduce(nullptr, data, 10), kInvalidArgument);
  expect_told("NULL");
  EXPECT_EQ(reduce(data, nullptr, 10), kInvalidArgument);
  expect_told("NULL");
  EXPECT_EQ(reduce(data, data + 5, 10), kInvalidArgument);
  expect_told("overlap");
  EXPECT_EQ(reduce(data, data, 10, nccl::kFloat32, nccl::kSum, data), kInvalidArgument);
  expect_told("registered");
  EXPECT_EQ(reduce(data + 991, data + 991, 10, nccl::kFloat32, nccl::kSum, memory),
            kInvalidArgument);
  expect_told("leave");
  EXPECT_EQ(reduce(data - 1, data - 1, 10, nccl::kFloat32, nccl::kSum, memory), kInvalidArgument);
  expect_told("leave");
  for (const size_t count : {size_t{INT_MAX}, SIZE_MAX, SIZE_MAX / 4 + 2}) {
    if (GetParam() == 8 && count == SIZE_MAX / 4 + 2) continue;  // counts are int
    EXPECT_EQ(reduce(data, data, count), kInvalidArgument);
    expect_told("elements");
  }
  EXPECT_EQ(coll_->iallreduce(end_.comm, data, data, 10, nccl::kFloat32, nccl::kSum, nullptr,
                              nullptr, nullptr),
            kInvalidArgument);
  expect_told();
  void* request = this;
  EXPECT_EQ(coll_->iflush(end_.comm, data, -1, memory, &request), kInvalidArgument);
  EXPECT_EQ(request, nullptr);
  expect_told();
  int done = -1;
  EXPECT_EQ(coll_->test(nullptr, &done, nullptr), kInvalidArgument);
  EXPECT_EQ(done, 0);
  expect_told();
}

TEST_P(CollInput, BadWindows) {
  open("exact");
  float* data = values_.data();
  const auto refused = [&](const Window& window) {
    void* request = this;
    EXPECT_EQ(coll_->iallgather(end_.comm, data, data, nullptr, nullptr, window, &request),
              kInvalidArgument);
    EXPECT_EQ(request, nullptr);
    expect_told("window");
    EXPECT_EQ(coll_->ireduce_scatter(end_.comm, data, data, nullptr, nullptr, window,
                                     nccl::kFloat32, nccl::kSum, &request),
              kInvalidArgument);
    EXPECT_EQ(request, nullptr);
    expect_told("window");
  };
  refused({400, 0, 404});
  refused({400, 4, 400});
  refused({400, SIZE_MAX - 3, 8});
  void* request = this;
  EXPECT_EQ(coll_->ireduce_scatter(end_.comm, data, data, nullptr, nullptr, {402, 0, 402},
                                   nccl::kFloat32, nccl::kSum, &request),
            kInvalidArgument);
  expect_told("window");
  EXPECT_EQ(coll_->ireduce_scatter(end_.comm, data, data, nullptr, nullptr, {400, 0, 400},
                                   nccl::kFloat32, nccl::kProd, &request),
            kInvalidArgument);
  expect_told("reduceSupport");
}

TEST_P(CollInput, ClosedComms) {
  open("exact");
  float* data = values_.data();
  void* closed = end_.comm;
  ASSERT_EQ(coll_->close_coll(closed), kSuccess);
  for (void* comm : {closed, static_cast<void*>(nullptr), listener_}) {
    void* result = this;
    end_.comm = comm;
    EXPECT_EQ(reduce(data, data, 10), kInvalidArgument);
    expect_told("closed");
    EXPECT_EQ(coll_->iflush(comm, data, 4, nullptr, &result), kInvalidArgument);
    EXPECT_EQ(result, nullptr);
    expect_told("closed");
    EXPECT_EQ(coll_->register_memory(comm, data, 10, nccl::kPointerHost, &result),
              kInvalidArgument);
    expect_told("closed");
    EXPECT_EQ(coll_->deregister_memory(comm, end_.staging_memory), kInvalidArgument);
    expect_told("closed");
    EXPECT_EQ(coll_->iallgather(comm, data, data, nullptr, nullptr, {4, 0, 4}, &result),
              kInvalidArgument);
    expect_told("closed");
    EXPECT_EQ(coll_->close_coll(comm), kInvalidArgument);
    expect_told("closed");
  }
  end_.comm = nullptr;
  EXPECT_EQ(coll_->close_listen(closed), kInvalidArgument);
  expect_told("closed");
}

}  // namespace
}  // namespace bitrail::test
