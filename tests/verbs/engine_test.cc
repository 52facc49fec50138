// Collectives over verbs on the fake: right results, and registrations made once, not by each call.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "tests/support/fake_verbs.h"
#include "tests/support/world.h"

namespace bitrail::test {
namespace {

constexpr size_t kElements = 1'000'000;
constexpr int kRanks = 3, kCalls = 4;

struct Devices {
  Devices() {
    FakeDevice device;
    device.name = "mlx5_0";
    fake.add_device(device);
    setenv("TEST_TRANSPORT", "verbs", 1);
  }
  ~Devices() { unsetenv("TEST_TRANSPORT"); }
  uint64_t registrations() { return fake.counters().calls[static_cast<int>(Call::reg_mr)]; }
  FakeVerbs fake;
};

// Calls of every rank up to here are over: an allreduce of a few bytes registers nothing.
void together(bitrail_comm_t comm) { ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK); }

// The same 1-bit allreduce again and again; `after` is called when all ranks are through with one.
template <typename After>
void compress(bitrail_comm_t comm, After after) {
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = 1;
  layout.counts = &kElements;
  bitrail_error_state_t state = nullptr;
  ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
  std::vector<float> data(kElements), got(kElements);
  for (size_t i = 0; i < kElements; i++) data[i] = i % 2 == 0 ? 1.0f : -1.0f;
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.type = BITRAIL_FLOAT32;
  call.send = data.data();
  call.recv = got.data();
  for (int i = 0; i < kCalls; i++) {
    ASSERT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK) << bitrail_last_error();
    together(comm);
    after(i);
    together(comm);
  }
  float off = 0;  // one magnitude everywhere: the code loses nothing but roundings
  for (size_t i = 0; i < kElements; i++) off = std::max(off, std::fabs(data[i] - got[i]));
  EXPECT_LT(off, 1e-3f);
  EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
}

TEST(EngineOverVerbs, RegistersItsScratchOnce) {
  Devices devices;
  {
    World world(kRanks);
    world.run([&](int rank, bitrail_comm_t comm) {
      uint64_t after_first = 0;
      compress(comm, [&](int call) {
        if (rank != 0) return;
        if (call == 0) after_first = devices.registrations();
        EXPECT_EQ(devices.registrations(), after_first) << "call " << call;
      });
    });
  }
  EXPECT_TRUE(devices.fake.counters().clean());
}

// Larger than a connection's rings and than the messages, smaller than the scratch.
constexpr size_t kTooMuch = 250'000;
std::atomic<int> refused{0};
decltype(transport::verbs::Table::reg_mr_iova2) fake_register = nullptr;
ibv_mr* refuse_much(ibv_pd* pd, void* address, size_t bytes, uint64_t iova, unsigned access) {
  if (bytes <= kTooMuch) return fake_register(pd, address, bytes, iova, access);
  refused++;
  errno = ENOMEM;
  return nullptr;
}

TEST(EngineOverVerbs, ScratchThatIsRefusedIsTriedOnce) {
  Devices devices;
  fake_register = devices.fake.table().reg_mr_iova2;
  devices.fake.table().reg_mr_iova2 = refuse_much;
  refused = 0;
  {
    World world(kRanks);
    world.run([&](int rank, bitrail_comm_t comm) {
      uint64_t before = devices.registrations();
      compress(comm, [&](int /*call*/) {
        if (rank != 0) return;
        EXPECT_GT(devices.registrations(), before);  // by messages
        before = devices.registrations();
      });
    });
  }
  EXPECT_EQ(refused, kRanks);
  EXPECT_TRUE(devices.fake.counters().clean());
}

// The callers' own memory, which they may unmap after the call without a word, is registered for
// each long message and not kept: what stays between calls is the rings and the scratch.
TEST(EngineOverVerbs, KeepsNoRegistrationOfTheCallersMemory) {
  Devices devices;
  {
    World world(kRanks);
    world.run([&](int rank, bitrail_comm_t comm) {
      std::vector<float> data(kElements, static_cast<float>(rank + 1)), got(kElements);
      int kept = 0;
      for (int i = 0; i < kCalls; i++) {
        ASSERT_EQ(bitrail_allreduce(comm, data.data(), got.data(), kElements, BITRAIL_FLOAT32,
                                    BITRAIL_SUM, nullptr),
                  BITRAIL_OK)
            << bitrail_last_error();
        together(comm);
        if (rank == 0) {
          const std::vector<FakeRegistration> all = devices.fake.registrations();
          if (i == 0) kept = static_cast<int>(all.size());
          EXPECT_EQ(static_cast<int>(all.size()), kept);
          for (const FakeRegistration& one : all) {
            for (const std::vector<float>* buffer : {&data, &got}) {
              const auto at = reinterpret_cast<uint64_t>(buffer->data() + kElements / 2);
              EXPECT_FALSE(one.address <= at && at < one.address + one.bytes);
            }
          }
        }
        together(comm);
      }
      EXPECT_EQ(got, std::vector<float>(kElements, 6.0f));
    });
  }
  EXPECT_TRUE(devices.fake.counters().clean());
}

}  // namespace
}  // namespace bitrail::test
