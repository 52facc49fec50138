// bitrail.hpp: owners, exceptions, and that each method reaches the call it stands for.
#include <bitrail/bitrail.hpp>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/spawn.h"

namespace bitrail {
namespace {

// An all-gather among threads, as a program on MPI would supply it.
class Exchange {
 public:
  explicit Exchange(int size) : size_(size) {}
  void gather(int rank, const void* mine, size_t bytes, void* all) {
    std::unique_lock lock(mutex_);
    // A new round starts once everybody has left the last one.
    ready_.wait(lock, [this] { return !leaving_; });
    data_.resize(bytes * static_cast<size_t>(size_));
    std::memcpy(data_.data() + bytes * static_cast<size_t>(rank), mine, bytes);
    if (++inside_ == size_) leaving_ = true;
    ready_.notify_all();
    ready_.wait(lock, [this] { return leaving_; });
    std::memcpy(all, data_.data(), data_.size());
    if (--inside_ == 0) leaving_ = false;
    ready_.notify_all();
  }

 private:
  const int size_;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<char> data_;
  int inside_ = 0;
  bool leaving_ = false;
};

struct Member {
  Exchange* exchange;
  int rank;
};

int gather(void* user, const void* mine, size_t bytes, void* all) {
  const auto* member = static_cast<const Member*>(user);
  member->exchange->gather(member->rank, mine, bytes, all);
  return 0;
}

void with_ranks(int size, const std::function<void(Communicator&)>& body) {
  Exchange exchange(size);
  test::spawn(size, [&](int rank) {
    Member member{&exchange, rank};
    bitrail_comm_options_t options = comm_options();
    options.rank = rank;
    options.world_size = size;
    options.allgather = gather;
    options.allgather_user = &member;
    options.secret = "cpp header test";
    Communicator comm(options);
    body(comm);
  });
}

TEST(CppHeader, TypesAreKnown) {
  EXPECT_EQ(type_of<float>(), BITRAIL_FLOAT32);
  EXPECT_EQ(type_of<const double>(), BITRAIL_FLOAT64);
  EXPECT_EQ(type_of<int32_t>(), BITRAIL_INT32);
  EXPECT_EQ(type_of<int64_t>(), BITRAIL_INT64);
  EXPECT_EQ(type_of<uint8_t>(), BITRAIL_UINT8);
}

TEST(CppHeader, ErrorCarriesStatusAndText) {
  try {
    check(bitrail_allreduce(nullptr, nullptr, nullptr, 1, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr));
    FAIL() << "a null communicator was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find(bitrail_status_string(error.status())),
              std::string::npos);
  }
}

TEST(CppHeader, CollectivesOfTwoRanks) {
  with_ranks(2, [](Communicator& comm) {
    const auto rank = static_cast<float>(comm.rank());
    EXPECT_EQ(comm.launcher(), "callback");
    std::vector<float> mine = {rank, 10 + rank}, sum(2), all(4), part(1), swapped(2);
    comm.allreduce<float>(mine, sum);
    EXPECT_EQ(sum, (std::vector<float>{1, 21}));
    comm.allreduce_deterministic<float>(mine, sum, BITRAIL_MAX);
    EXPECT_EQ(sum, (std::vector<float>{1, 11}));
    comm.allgather<float>(mine, all);
    EXPECT_EQ(all, (std::vector<float>{0, 10, 1, 11}));
    comm.reduce_scatter<float>(mine, part);
    EXPECT_EQ(part[0], comm.rank() == 0 ? 1 : 21);
    comm.alltoall<float>(mine, swapped);
    EXPECT_EQ(swapped, (comm.rank() == 0 ? std::vector<float>{0, 1} : std::vector<float>{10, 11}));
    comm.broadcast(std::span(mine), 1);
    EXPECT_EQ(mine, (std::vector<float>{1, 11}));
    Request request = comm.allreduce_async<float>(mine, sum);
    request.wait();
    EXPECT_TRUE(request.test()) << "a finished request stays finished";
    EXPECT_EQ(sum, (std::vector<float>{2, 22}));
    comm.barrier();
    EXPECT_GE(comm.counters().calls, 8U);
  });
}

TEST(CppHeader, PointToPoint) {
  with_ranks(2, [](Communicator& comm) {
    std::vector<int32_t> data = {1, 2, 3}, room(8);
    if (comm.rank() == 0) {
      comm.send(std::as_bytes(std::span(data)), 1, 42);
    } else {
      EXPECT_EQ(comm.recv(std::as_writable_bytes(std::span(room)), 0, 42), 12U);
      EXPECT_EQ(room[2], 3);
    }
  });
}

TEST(CppHeader, WrongSizesAreRefusedBeforeSending) {
  with_ranks(1, [](Communicator& comm) {
    std::vector<float> two(2), three(3);
    EXPECT_THROW(comm.allreduce<float>(two, three), Error);
    const size_t count = 2;
    ErrorState state(comm, std::span(&count, 1));
    EXPECT_THROW(state.allreduce(std::span(three)), Error);
  });
}

TEST(CppHeader, ErrorStateKeepsWhatTheCodeLost) {
  with_ranks(2, [](Communicator& comm) {
    const size_t counts[] = {100, 28};
    ErrorState state(comm, counts);
    EXPECT_EQ(state.norms().first, 0);
    std::vector<float> data(128);
    std::iota(data.begin(), data.end(), static_cast<float>(comm.rank()));
    state.allreduce(std::span(data));
    const auto norms = state.norms();
    EXPECT_GT(norms.first, 0);
    const auto saved = state.save();
    state.reset();
    EXPECT_EQ(state.norms().first, 0);
    state.load(saved);
    EXPECT_EQ(state.norms(), norms);
    ErrorState moved = std::move(state);
    EXPECT_EQ(moved.norms(), norms);
  });
}

TEST(CppHeader, OptimizerStepsAndFreezes) {
  with_ranks(2, [](Communicator& comm) {
    std::vector<float> params(64, 1.0F);
    const std::vector<float> gradient(64, 0.5F);
    const bitrail_param_group_t group = param_group(0.01);
    Optimizer::Options options;
    options.params = params;
    options.groups = {&group, 1};
    options.freeze_step = 2;
    options.init_call = false;
    auto optimizer = Optimizer::onebit_adam(comm, options);
    EXPECT_TRUE(optimizer.wants_mean());
    for (int step = 0; step < 4; step++) optimizer.step(gradient);
    EXPECT_TRUE(optimizer.frozen());
    EXPECT_FALSE(optimizer.wants_mean());
    EXPECT_EQ(optimizer.step_count(), 4);
    EXPECT_LT(params[0], 1);
    EXPECT_GE(optimizer.state_bytes(), 2 * 64 * sizeof(float));
    const std::vector<float> two(2);
    EXPECT_THROW(optimizer.step(two), Error);
  });
}

}  // namespace
}  // namespace bitrail
