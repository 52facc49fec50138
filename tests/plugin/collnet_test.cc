// CollNet's numbers and lives: against a reference, against the library's own 1-bit calls, with
// errors that stay with their buffer, with peers that go or never come.
#include <cmath>
#include <limits>
#include <vector>

#include "plugin/collnet/states.h"
#include "tests/plugin/collnet/mutation.h"
#include "tests/plugin/collnet/room.h"
#include "tests/plugin/driver/net.h"
#include "tests/support/entries.h"
#include "tests/support/world.h"

namespace bitrail::test {
namespace {

using Values = std::vector<float>;

std::string version_name(const testing::TestParamInfo<int>& version) {
  return fmt::format("v{}", version.param);
}

class CollNet : public testing::TestWithParam<int> {
 protected:
  ~CollNet() override { take_warnings(); }
  std::unique_ptr<Coll> coll_ = coll_of(GetParam());
};
INSTANTIATE_TEST_SUITE_P(Versions, CollNet, all_coll_versions(), version_name);

class CollNetContext : public CollNet {};
INSTANTIATE_TEST_SUITE_P(Versions, CollNetContext, testing::Values(kNewestColl), version_name);

constexpr size_t kCount = 10'000;

Values values_of(int rank, int round, size_t count = kCount) {
  Values values(count);
  for (size_t i = 0; i < count; i++) {
    values[i] = std::sin(static_cast<float>(i * 7 + 13) * static_cast<float>(rank + 1) * 0.1f) *
                static_cast<float>(round + 1);
  }
  return values;
}

// What the library itself makes of these rounds, as sums: by rank and round.
std::vector<std::vector<Values>> library_sums(int ranks, int rounds, size_t count = kCount) {
  std::vector<std::vector<Values>> sums(static_cast<size_t>(ranks));
  World world(ranks);
  world.run([&](int rank, bitrail_comm_t comm) {
    bitrail_error_state_t state = nullptr;
    const bitrail_onebit_layout_t layout = plugin::collnet::onebit_layout(&count);
    ASSERT_EQ(bitrail_error_state_create(&state, comm, &layout), BITRAIL_OK);
    for (int round = 0; round < rounds; round++) {
      const Values send = values_of(rank, round, count);
      Values receive(count);
      bitrail_onebit_call_t call{};
      call.struct_size = sizeof(call);
      call.send = send.data();
      call.recv = receive.data();
      EXPECT_EQ(bitrail_onebit_allreduce(state, &call, nullptr), BITRAIL_OK);
      for (float& value : receive) value *= static_cast<float>(ranks);
      sums[static_cast<size_t>(rank)].push_back(receive);
    }
    EXPECT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
    EXPECT_EQ(bitrail_error_state_destroy(state), BITRAIL_OK);
  });
  return sums;
}

Values sum_in_place(const CollRank& end, Values values, Values* buffer, void* memory) {
  std::copy(values.begin(), values.end(), buffer->begin());
  void* request = end.reduce(buffer->data(), buffer->data(), values.size(), memory, memory);
  require(end.finish(request, values.size() * sizeof(float)) == nccl::kSuccess, "a sum fails");
  std::copy(buffer->begin(), buffer->begin() + static_cast<ptrdiff_t>(values.size()),
            values.begin());
  return values;
}

TEST_P(CollNet, ExactAmongThreads) {
  const Variable on("BITRAIL_COLLNET", "exact");
  for (const int ranks : {1, 2, 4}) {
    CollOptions options;
    options.ranks = ranks;
    options.rounds = 3;
    Boards boards(1);
    EXPECT_EQ(drive_threads(*coll_, options, &boards[0]), "") << ranks;
  }
}

TEST_P(CollNet, OneBitAmongThreads) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  CollOptions options;
  options.ranks = 4;
  options.onebit = true;
  options.rounds = 24;
  Boards boards(1);
  EXPECT_EQ(drive_threads(*coll_, options, &boards[0]), "");
}

// Two ranges take turns, in place and not: each goes on with its own errors.
TEST_P(CollNet, OneBitIsTheLibrarysByRange) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  constexpr int kRanks = 3, kRounds = 4;
  const auto expected = library_sums(kRanks, kRounds);
  in_room(coll_.get(), kRanks, [&](int rank, CollRank& end) {
    const auto& own = expected[static_cast<size_t>(rank)];
    Values first(kCount), second(2 * kCount), receive(kCount);
    void* first_memory = end.register_floats(first);
    void* second_memory = end.register_floats(second);
    void* receive_memory = end.register_floats(receive);
    float* middle = second.data() + kCount / 2;
    for (int round = 0; round < kRounds; round++) {
      const Values send = values_of(rank, round);
      EXPECT_EQ(sum_in_place(end, send, &first, first_memory), own[static_cast<size_t>(round)]);
      std::copy(send.begin(), send.end(), middle);
      void* request = end.reduce(middle, receive.data(), kCount, second_memory, receive_memory);
      EXPECT_EQ(end.finish(request, kCount * sizeof(float)), nccl::kSuccess);
      EXPECT_EQ(receive, own[static_cast<size_t>(round)]);
    }
    EXPECT_NE(own[0], own[1]);
  });
}

// The same buffer in another communicator, or registered anew, begins without errors.
TEST_P(CollNet, ErrorsAreOfOneCommunicatorAndRegistration) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  constexpr int kRanks = 2;
  const auto expected = library_sums(kRanks, 1);
  std::vector<Values> buffers(kRanks, Values(kCount));
  for (const uint64_t comm_id : {21, 22}) {
    in_room(
        coll_.get(), kRanks,
        [&](int rank, CollRank& end) {
          Values* buffer = &buffers[static_cast<size_t>(rank)];
          const Values& fresh = expected[static_cast<size_t>(rank)][0];
          void* memory = end.register_floats(*buffer);
          EXPECT_EQ(sum_in_place(end, values_of(rank, 0), buffer, memory), fresh);
          EXPECT_NE(sum_in_place(end, values_of(rank, 0), buffer, memory), fresh);
          // Registered twice: the errors stay until the last one goes.
          void* again = end.register_floats(*buffer);
          EXPECT_EQ(end.coll->deregister_memory(end.comm, memory), nccl::kSuccess);
          EXPECT_NE(sum_in_place(end, values_of(rank, 0), buffer, again), fresh);
          EXPECT_EQ(end.coll->deregister_memory(end.comm, again), nccl::kSuccess);
          memory = end.register_floats(*buffer);
          EXPECT_EQ(sum_in_place(end, values_of(rank, 0), buffer, memory), fresh);
        },
        comm_id);
  }
}

TEST_P(CollNet, RangeCutAnewIsTold) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  constexpr int kRanks = 2;
  constexpr size_t kHalf = kCount / 2;
  const auto expected = library_sums(kRanks, 1, kHalf);
  in_room(coll_.get(), kRanks, [&](int rank, CollRank& end) {
    Values buffer(kCount);
    void* memory = end.register_floats(buffer);
    sum_in_place(end, values_of(rank, 0), &buffer, memory);
    EXPECT_EQ(sum_in_place(end, values_of(rank, 0, kHalf), &buffer, memory),
              expected[static_cast<size_t>(rank)][0]);
  });
  const std::vector<std::string> warnings = take_warnings();
  ASSERT_EQ(warnings.size(), static_cast<size_t>(kRanks));
  EXPECT_NE(warnings[0].find("dropped"), std::string::npos) << warnings[0];
}

// As NCCL's own sums: what is not finite arrives, and the errors are as before.
TEST_P(CollNet, NotFiniteIsSummedExactly) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  constexpr int kRanks = 2;
  const auto expected = library_sums(kRanks, 2);
  in_room(coll_.get(), kRanks, [&](int rank, CollRank& end) {
    const auto& own = expected[static_cast<size_t>(rank)];
    Values buffer(kCount);
    void* memory = end.register_floats(buffer);
    EXPECT_EQ(sum_in_place(end, values_of(rank, 0), &buffer, memory), own[0]);
    Values infinite(kCount, 1);
    if (rank == 1) infinite[5] = std::numeric_limits<float>::infinity();
    const Values sum = sum_in_place(end, infinite, &buffer, memory);
    EXPECT_EQ(sum[4], kRanks);
    EXPECT_TRUE(std::isinf(sum[5]));
    EXPECT_EQ(sum_in_place(end, values_of(rank, 1), &buffer, memory), own[1]);
  });
}

TEST_P(CollNet, SixteenBitTypes) {
  const Variable on("BITRAIL_COLLNET", "onebit");
  constexpr size_t kWhole = 16'384;  // no block has padding
  in_room(coll_.get(), 2, [&](int rank, CollRank& end) {
    for (const int type : {nccl::kFloat16, nccl::kBfloat16}) {
      // One value everywhere is its own mean: 1 + rank becomes 3 at both.
      const uint16_t one = type == nccl::kFloat16 ? 0x3c00 : 0x3f80;
      const uint16_t two = 0x4000, three = type == nccl::kFloat16 ? 0x4200 : 0x4040;
      std::vector<uint16_t> buffer(kWhole, rank == 0 ? one : two);
      void* memory = nullptr;
      void* request = nullptr;
      ASSERT_EQ(end.coll->register_memory(end.comm, buffer.data(), 2 * kWhole, nccl::kPointerHost,
                                          &memory),
                nccl::kSuccess);
      ASSERT_EQ(end.coll->iallreduce(end.comm, buffer.data(), buffer.data(), kWhole, type,
                                     nccl::kSum, memory, memory, &request),
                nccl::kSuccess);
      ASSERT_EQ(end.finish(request, 2 * kWhole), nccl::kSuccess);
      EXPECT_EQ(buffer, std::vector<uint16_t>(kWhole, three));
      EXPECT_EQ(end.coll->deregister_memory(end.comm, memory), nccl::kSuccess);
    }
  });
}

TEST_P(CollNet, MinimumAndMaximumOfIntegers) {
  const Variable on("BITRAIL_COLLNET", "exact");
  in_room(coll_.get(), 3, [&](int rank, CollRank& end) {
    for (const int operation : {nccl::kMin, nccl::kMax}) {
      std::vector<int64_t> send(1000, -rank), receive(1000, 77);
      void* request = nullptr;
      ASSERT_EQ(end.coll->iallreduce(end.comm, send.data(), receive.data(), 1000, nccl::kInt64,
                                     operation, nullptr, nullptr, &request),
                nccl::kSuccess);
      ASSERT_EQ(end.finish(request, 8000), nccl::kSuccess);
      EXPECT_EQ(receive, std::vector<int64_t>(1000, operation == nccl::kMin ? -2 : 0));
    }
  });
}

TEST_P(CollNet, CloseWithCallsInFlightIsTold) {
  const Variable on("BITRAIL_COLLNET", "exact");
  in_room(coll_.get(), 2, [&](int rank, CollRank& end) {
    Values values(kCount, 1);
    if (rank == 0) {
      void* request = end.reduce(values.data(), values.data(), kCount, nullptr, nullptr);
      int done = -1;
      EXPECT_EQ(end.coll->test(request, &done, nullptr), nccl::kSuccess);
      EXPECT_EQ(done, 0);
      EXPECT_EQ(end.coll->close_coll(end.comm), nccl::kSuccess);
      end.comm = nullptr;
      EXPECT_EQ(end.coll->test(request, &done, nullptr), nccl::kInvalidArgument);
      return;
    }
    // Not the call that rank 0 began: it ends by rank 0's going, early or late.
    void* request = nullptr;
    nccl::Result result = nccl::kSuccess;
    const Deadline deadline = Deadline::in_ms(60'000);
    while (result == nccl::kSuccess && !deadline.passed()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      result = end.coll->iallreduce(end.comm, values.data(), values.data(), 1, nccl::kFloat64,
                                    nccl::kMax, nullptr, nullptr, &request);
      if (result == nccl::kSuccess) result = end.finish(request, 8);
    }
    EXPECT_EQ(result, nccl::kRemoteError);
  });
}

TEST_P(CollNet, PeersThatCallDifferentlyFail) {
  const Variable on("BITRAIL_COLLNET", "exact");
  in_room(coll_.get(), 2, [&](int rank, CollRank& end) {
    Values values(kCount, 1);
    const size_t count = rank == 0 ? kCount : kCount - 1;
    void* request = end.reduce(values.data(), values.data(), count, nullptr, nullptr);
    EXPECT_EQ(end.finish(request, count * sizeof(float)), nccl::kRemoteError);
  });
}

TEST_P(CollNet, PeersNeverCome) {
  const Variable on("BITRAIL_COLLNET", "exact"), patience("BITRAIL_TIMEOUT_MS", "300");
  for (const int rank : {0, 1}) {
    void* context = nullptr;
    void* listeners[2] = {};
    void* comm = &comm;
    Handle handles[2];
    ASSERT_EQ(coll_->init(&context, 3), nccl::kSuccess);
    for (int i = 0; i < 2; i++) {
      ASSERT_EQ(coll_->listen(context, 0, handles[i].data(), &listeners[i]), nccl::kSuccess);
    }
    void* given[] = {handles[0].data(), handles[1].data()};
    EXPECT_EQ(coll_->connect(given, 2, rank, listeners[rank], &comm), nccl::kRemoteError);
    EXPECT_EQ(comm, nullptr);
    EXPECT_EQ(take_warnings().size(), 1U);
    for (void* listener : listeners) EXPECT_EQ(coll_->close_listen(listener), nccl::kSuccess);
    EXPECT_EQ(coll_->finalize(context), nccl::kSuccess);
  }
}

TEST_P(CollNet, CreateDestroyCreate) {
  const Variable on("BITRAIL_COLLNET", "exact");
  const auto once = [&] {
    in_room(coll_.get(), 2, [](int, CollRank& end) {
      Values values(100, 1);
      void* request = end.reduce(values.data(), values.data(), 100, nullptr, nullptr);
      EXPECT_EQ(end.finish(request, 400), nccl::kSuccess);
    });
  };
  once();  // what is kept for good is there now
  const long threads = entries(kThreads), files = entries(kDescriptors);
  for (int round = 0; round < 3; round++) once();
  EXPECT_LE(entries_left(kThreads, threads), threads);
  EXPECT_LE(entries_left(kDescriptors, files), files);
}

// NCCL forgets the listen comm of a connect that failed.
TEST_P(CollNetContext, FinalizeClosesWhatIsLeft) {
  const Variable on("BITRAIL_COLLNET", "exact");
  void* context = nullptr;
  void* listener = nullptr;
  Handle handle;
  ASSERT_EQ(coll_->init(&context, 3), nccl::kSuccess);
  ASSERT_EQ(coll_->listen(context, 0, handle.data(), &listener), nccl::kSuccess);
  EXPECT_EQ(coll_->finalize(context), nccl::kSuccess);
  EXPECT_EQ(coll_->close_listen(listener), nccl::kInvalidArgument);
  EXPECT_EQ(coll_->finalize(context), nccl::kSuccess);
  EXPECT_EQ(coll_->finalize(nullptr), nccl::kSuccess);
}

class CollMutation : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Faults, CollMutation, testing::Range(0, kCollFaults),
                         [](const testing::TestParamInfo<int>& fault) {
                           return std::string(coll_fault_name(static_cast<CollFault>(fault.param)));
                         });

TEST_P(CollMutation, IsNoticed) {
  const auto fault = static_cast<CollFault>(GetParam());
  const Variable on("BITRAIL_COLLNET", "onebit");
  const std::unique_ptr<Coll> good = coll_of(kNewestColl);
  const std::unique_ptr<Coll> coll = mutate(good.get(), fault);
  CollOptions options;
  options.onebit = true;
  Boards boards(1);
  const std::string text = drive_threads(*coll, options, &boards[0]);
  if (fault == CollFault::none) {
    EXPECT_EQ(text, "");
  } else {
    EXPECT_NE(text, "");
    RecordProperty("noticed", text);
  }
  take_warnings();
}

}  // namespace
}  // namespace bitrail::test
