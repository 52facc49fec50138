// The exact collectives through the C API: every one, in and out of place, against values computed
// here.
#include <gtest/gtest.h>

#include <bitrail/bitrail.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/host/convert.h"
#include "tests/support/world.h"

namespace bitrail {
namespace {

// Small integers: exact in every type, so sums have one right answer whatever the order.
int value(int rank, size_t i) {
  return static_cast<int>((i * 7 + static_cast<size_t>(rank) * 3) % 11);
}

class Values {
 public:
  Values(bitrail_type_t type, size_t n) : type_(type), bytes_(n * bitrail_type_size(type) + 1) {}
  void* data() { return bytes_.data(); }
  void set(size_t i, double v) {
    switch (type_) {
      case BITRAIL_FLOAT32:
        at<float>(i) = static_cast<float>(v);
        break;
      case BITRAIL_FLOAT64:
        at<double>(i) = v;
        break;
      case BITRAIL_INT32:
        at<int32_t>(i) = static_cast<int32_t>(v);
        break;
      case BITRAIL_INT64:
        at<int64_t>(i) = static_cast<int64_t>(v);
        break;
      case BITRAIL_UINT8:
        at<uint8_t>(i) = static_cast<uint8_t>(v);
        break;
      case BITRAIL_FLOAT16:
      case BITRAIL_BFLOAT16: {
        const float f = static_cast<float>(v);
        (type_ == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16)(
            &f, 1, &at<uint16_t>(i));
      }
    }
  }
  double get(size_t i) {
    switch (type_) {
      case BITRAIL_FLOAT32:
        return static_cast<double>(at<float>(i));
      case BITRAIL_FLOAT64:
        return at<double>(i);
      case BITRAIL_INT32:
        return at<int32_t>(i);
      case BITRAIL_INT64:
        return static_cast<double>(at<int64_t>(i));
      case BITRAIL_UINT8:
        return at<uint8_t>(i);
      default:
        break;
    }
    float f = 0;
    (type_ == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat)(&at<uint16_t>(i),
                                                                                 1, &f);
    return static_cast<double>(f);
  }
  std::byte* element(size_t i) { return bytes_.data() + i * bitrail_type_size(type_); }

 private:
  template <typename T>
  T& at(size_t i) {
    return reinterpret_cast<T*>(bytes_.data())[i];
  }
  bitrail_type_t type_;
  std::vector<std::byte> bytes_;
};

double expected(int world, bitrail_op_t op, size_t i) {
  double sum = 0, least = 1e9, most = -1e9;
  for (int r = 0; r < world; r++) {
    const double v = value(r, i);
    sum += v;
    least = std::min(least, v);
    most = std::max(most, v);
  }
  switch (op) {
    case BITRAIL_SUM:
      return sum;
    case BITRAIL_MIN:
      return least;
    case BITRAIL_MAX:
      return most;
    case BITRAIL_AVG:
      return sum / world;
  }
  return 0;
}

struct Case {
  bitrail_type_t type;
  bitrail_op_t op;
};

void check_allreduce(bitrail_comm_t comm, int world, int rank, Case c, size_t n, bool in_place,
                     bool deterministic) {
  Values send(c.type, n), recv(c.type, n);
  for (size_t i = 0; i < n; i++) send.set(i, value(rank, i));
  Values& out = in_place ? send : recv;
  const auto call = deterministic ? bitrail_allreduce_deterministic : bitrail_allreduce;
  ASSERT_EQ(call(comm, send.data(), out.data(), n, c.type, c.op, nullptr), BITRAIL_OK)
      << bitrail_last_error();
  for (size_t i = 0; i < n; i++) {
    const double want = expected(world, c.op, i);
    ASSERT_NEAR(out.get(i), want, std::abs(want) * (c.type == BITRAIL_BFLOAT16 ? 8e-3 : 1e-3))
        << "element " << i << " of " << n << ", rank " << rank;
  }
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, AllreduceOfAllTypesAndOperations) {
  const int world = GetParam();
  test::World job(world);
  job.run([&](int rank, bitrail_comm_t comm) {
    for (int type = BITRAIL_FLOAT32; type <= BITRAIL_UINT8; type++)
      for (int op = BITRAIL_SUM; op <= BITRAIL_AVG; op++) {
        const Case c{static_cast<bitrail_type_t>(type), static_cast<bitrail_op_t>(op)};
        if (c.op == BITRAIL_AVG && type >= BITRAIL_INT32) {
          float unused = 0;
          EXPECT_EQ(bitrail_allreduce(comm, &unused, &unused, 1, c.type, c.op, nullptr),
                    BITRAIL_ERR_UNSUPPORTED);
          continue;
        }
        for (size_t n : {0ul, 1ul, 5ul, 1000ul})
          for (bool in_place : {false, true})
            check_allreduce(comm, world, rank, c, n, in_place, false);
      }
  });
}

TEST_P(Collectives, AllreduceOfAllSizes) {
  const int world = GetParam();
  test::World job(world);
  job.run([&](int rank, bitrail_comm_t comm) {
    for (size_t n : {2ul, 3ul, 63ul, 4096ul, 4097ul, 100000ul, 1000003ul})
      for (bool in_place : {false, true})
        for (bool deterministic : {false, true})
          check_allreduce(comm, world, rank, {BITRAIL_FLOAT32, BITRAIL_SUM}, n, in_place,
                          deterministic);
  });
}

TEST_P(Collectives, ReduceScatterAndAllgather) {
  const int world = GetParam();
  const auto w = static_cast<size_t>(world);
  test::World job(world);
  job.run([&](int rank, bitrail_comm_t comm) {
    const auto r = static_cast<size_t>(rank);
    for (size_t n : {0ul, 1ul, 7ul, 50000ul})
      for (bool in_place : {false, true}) {
        Values all(BITRAIL_INT32, n * w), part(BITRAIL_INT32, n);
        for (size_t i = 0; i < n * w; i++) all.set(i, value(rank, i));
        void* out = in_place ? static_cast<void*>(all.element(r * n)) : part.data();
        ASSERT_EQ(
            bitrail_reduce_scatter(comm, all.data(), out, n, BITRAIL_INT32, BITRAIL_SUM, nullptr),
            BITRAIL_OK)
            << bitrail_last_error();
        for (size_t i = 0; i < n; i++)
          ASSERT_EQ(in_place ? all.get(r * n + i) : part.get(i),
                    expected(world, BITRAIL_SUM, r * n + i));

        Values mine(BITRAIL_INT64, n), gathered(BITRAIL_INT64, n * w);
        for (size_t i = 0; i < n; i++) {
          mine.set(i, value(rank, i));
          gathered.set(r * n + i, value(rank, i));
        }
        const void* in = in_place ? static_cast<void*>(gathered.element(r * n)) : mine.data();
        ASSERT_EQ(bitrail_allgather(comm, in, gathered.data(), n, BITRAIL_INT64, nullptr),
                  BITRAIL_OK)
            << bitrail_last_error();
        for (size_t p = 0; p < w; p++)
          for (size_t i = 0; i < n; i++)
            ASSERT_EQ(gathered.get(p * n + i), value(static_cast<int>(p), i));
      }
  });
}

TEST_P(Collectives, BroadcastAlltoallBarrier) {
  const int world = GetParam();
  const auto w = static_cast<size_t>(world);
  test::World job(world);
  job.run([&](int rank, bitrail_comm_t comm) {
    for (int root = 0; root < world; root++)
      for (size_t n : {0ul, 1ul, 300000ul}) {
        Values data(BITRAIL_UINT8, n);
        for (size_t i = 0; i < n; i++) data.set(i, rank == root ? value(root, i) : 99);
        ASSERT_EQ(
            bitrail_broadcast(comm, data.data(), data.data(), n, BITRAIL_UINT8, root, nullptr),
            BITRAIL_OK)
            << bitrail_last_error();
        for (size_t i = 0; i < n; i++) ASSERT_EQ(data.get(i), value(root, i));
      }
    for (size_t n : {1ul, 1000ul}) {
      Values in(BITRAIL_FLOAT64, n * w), out(BITRAIL_FLOAT64, n * w);
      for (size_t i = 0; i < n * w; i++) in.set(i, value(rank, i));
      ASSERT_EQ(bitrail_alltoall(comm, in.data(), out.data(), n, BITRAIL_FLOAT64, nullptr),
                BITRAIL_OK)
          << bitrail_last_error();
      for (size_t p = 0; p < w; p++)
        for (size_t i = 0; i < n; i++)
          ASSERT_EQ(out.get(p * n + i),
                    value(static_cast<int>(p), static_cast<size_t>(rank) * n + i));
    }
    for (int i = 0; i < 10; i++) ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, Collectives, testing::Values(1, 2, 3, 4, 7));

TEST(Requests, SeveralInFlightCompleteInAnyOrder) {
  test::World job(3);
  job.run([&](int rank, bitrail_comm_t comm) {
    constexpr int kCalls = 8;
    std::vector<std::vector<float>> data(kCalls, std::vector<float>(10000));
    std::vector<bitrail_request_t> requests(kCalls);
    for (int c = 0; c < kCalls; c++) {
      for (size_t i = 0; i < 10000; i++)
        data[static_cast<size_t>(c)][i] = static_cast<float>(value(rank, i) + c);
      ASSERT_EQ(bitrail_allreduce(comm, data[static_cast<size_t>(c)].data(),
                                  data[static_cast<size_t>(c)].data(), 10000, BITRAIL_FLOAT32,
                                  BITRAIL_SUM, &requests[static_cast<size_t>(c)]),
                BITRAIL_OK);
    }
    // The last one only by asking: the progress thread does the work.
    bitrail_status_t status;
    while ((status = bitrail_test(&requests[kCalls - 1])) == BITRAIL_IN_PROGRESS)
      std::this_thread::yield();
    ASSERT_EQ(status, BITRAIL_OK);
    ASSERT_EQ(requests[kCalls - 1], nullptr);
    for (int c = kCalls - 2; c >= 0; c--)
      ASSERT_EQ(bitrail_wait(&requests[static_cast<size_t>(c)]), BITRAIL_OK);
    for (int c = 0; c < kCalls; c++)
      for (size_t i = 0; i < 10000; i++)
        ASSERT_EQ(data[static_cast<size_t>(c)][i], expected(3, BITRAIL_SUM, i) + 3 * c);
  });
}

TEST(PointToPoint, SixtyFourBitTagsShortAndLongReceives) {
  test::World job(2);
  job.run([&](int rank, bitrail_comm_t comm) {
    const uint64_t low = 5, high = 5 | uint64_t{1} << 63;
    std::vector<int> first(10, 1), second(20, 2), in(30, 0);
    if (rank == 0) {
      ASSERT_EQ(bitrail_send(comm, first.data(), 40, 1, low, nullptr), BITRAIL_OK);
      ASSERT_EQ(bitrail_send(comm, second.data(), 80, 1, high, nullptr), BITRAIL_OK);
      ASSERT_EQ(bitrail_send(comm, second.data(), 80, 1, 7, nullptr), BITRAIL_OK);
      ASSERT_EQ(bitrail_send(comm, nullptr, 0, 1, 8, nullptr), BITRAIL_OK);
    } else {
      size_t received = 0;
      ASSERT_EQ(bitrail_recv(comm, in.data(), 120, 0, high, &received, nullptr), BITRAIL_OK);
      EXPECT_EQ(received, 80u);
      EXPECT_EQ(in[0], 2);
      ASSERT_EQ(bitrail_recv(comm, in.data(), 120, 0, low, &received, nullptr), BITRAIL_OK);
      EXPECT_EQ(received, 40u);
      EXPECT_EQ(in[0], 1);
      EXPECT_EQ(bitrail_recv(comm, in.data(), 8, 0, 7, &received, nullptr), BITRAIL_ERR_MISMATCH);
      EXPECT_EQ(in[0], 1) << "a message that is too long leaves the buffer alone";
      ASSERT_EQ(bitrail_recv(comm, in.data(), 8, 0, 8, &received, nullptr), BITRAIL_OK);
      EXPECT_EQ(received, 0u);
    }
    EXPECT_EQ(bitrail_send(comm, first.data(), 4, rank, 1, nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_send(comm, first.data(), 4, 2, 1, nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
    ASSERT_EQ(bitrail_barrier(comm, nullptr), BITRAIL_OK);
  });
}

TEST(Arguments, AreRefusedWithoutHarm) {
  test::World job(2);
  job.run([&](int, bitrail_comm_t comm) {
    float data[8] = {};
    EXPECT_EQ(bitrail_allreduce(nullptr, data, data, 8, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_allreduce(comm, nullptr, data, 8, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_allreduce(comm, data, data, 8, static_cast<bitrail_type_t>(77), BITRAIL_SUM,
                                nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_allreduce(comm, data, data, 8, BITRAIL_FLOAT32, static_cast<bitrail_op_t>(9),
                                nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_allreduce(comm, data, data + 1, 4, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_broadcast(comm, data, data, 4, BITRAIL_FLOAT32, 2, nullptr),
              BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_EQ(bitrail_wait(nullptr), BITRAIL_ERR_INVALID_ARGUMENT);
    EXPECT_STRNE(bitrail_last_error(), "");
    EXPECT_EQ(bitrail_allreduce(comm, data, data, 8, BITRAIL_FLOAT32, BITRAIL_SUM, nullptr),
              BITRAIL_OK);
  });
}

}  // namespace
}  // namespace bitrail
