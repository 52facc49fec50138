// One communicator of two ends in this process, for tests that call the plugin themselves.
#pragma once

#include <gtest/gtest.h>

#include <sched.h>

#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "runtime/common/clock.h"
#include "tests/plugin/driver/net.h"

namespace bitrail::test {

constexpr int64_t kPatienceMs = 60'000;  // only a hang takes this long

inline const File& plugin_file() {
  static const File file(PLUGIN_FILE);
  return file;
}

struct Session {
  explicit Session(int version, uint64_t comm_id = 7) : net(plugin_file().net(version)) {
    EXPECT_NE(net, nullptr);
    EXPECT_EQ(net->init(&context, comm_id), nccl::kSuccess);
    EXPECT_EQ(net->listen(context, 0, handle.data(), &listener), nccl::kSuccess);
    EXPECT_NE(listener, nullptr);
  }
  ~Session() {
    if (sender != nullptr) {
      EXPECT_EQ(net->close_send(sender), nccl::kSuccess);
    }
    if (receiver != nullptr) {
      EXPECT_EQ(net->close_receive(receiver), nccl::kSuccess);
    }
    if (listener != nullptr) {
      EXPECT_EQ(net->close_listen(listener), nccl::kSuccess);
    }
    EXPECT_EQ(net->finalize(context), nccl::kSuccess);
    take_warnings();
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void connect() { connect(&sender, &receiver); }
  void connect(void** send, void** receive) {
    Handle copy = handle;
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    while (*send == nullptr || *receive == nullptr) {
      ASSERT_FALSE(deadline.passed()) << "set-up hangs";
      if (*send == nullptr) {
        ASSERT_EQ(net->connect(context, device, copy.data(), send), nccl::kSuccess);
      }
      if (*receive == nullptr) {
        ASSERT_EQ(net->accept(listener, receive), nccl::kSuccess);
      }
      sched_yield();
    }
  }

  // The code that test() ends with, or kInProgress after `ms`.
  nccl::Result finish(void* request, int* sizes = nullptr, int64_t ms = kPatienceMs) const {
    const Deadline deadline = Deadline::in_ms(ms);
    while (!deadline.passed()) {
      int done = -1;
      const nccl::Result result = net->test(request, &done, sizes);
      EXPECT_TRUE(done == 0 || done == 1);
      if (result != nccl::kSuccess || done == 1) return result;
      sched_yield();
    }
    return nccl::kInProgress;
  }

  void* send(void* data, size_t bytes, int tag) const {
    void* request = nullptr;
    EXPECT_EQ(net->isend(sender, data, bytes, tag, nullptr, nullptr, &request), nccl::kSuccess);
    return request;
  }
  void* receive(void* data, size_t bytes, int tag) const {
    void* request = nullptr;
    void* memory = nullptr;
    EXPECT_EQ(net->irecv(receiver, 1, &data, &bytes, &tag, &memory, nullptr, &request),
              nccl::kSuccess);
    return request;
  }

  std::unique_ptr<Net> net;
  void* context = nullptr;
  int device = 0;  // that connect() uses
  Handle handle{};
  void* listener = nullptr;
  void* sender = nullptr;
  void* receiver = nullptr;
};

// All versions, for INSTANTIATE_TEST_SUITE_P.
inline auto all_versions() { return testing::Range(kOldest, kNewest + 1); }
inline std::string version_name(const testing::TestParamInfo<int>& version) {
  return fmt::format("v{}", version.param);
}

}  // namespace bitrail::test
