#include "kernels/host/unpack.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using test::Equal;
using test::Guarded;

class Unpack : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Unpack);

struct Ranks {
  std::vector<Guarded<uint8_t>> arrays;
  std::vector<const uint8_t*> bits;
  std::vector<float> weights;

  Ranks(int ranks, size_t n, size_t offset, test::Random& random) {
    for (int r = 0; r < ranks; r++) {
      arrays.emplace_back((n + 7) / 8, offset);
      test::FillBits(arrays.back(), random);
      weights.push_back(random.Uniform());
    }
    for (auto& array : arrays) bits.push_back(array.data());
  }
};

void Compare(int ranks, size_t n, size_t offset, bool hostile) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, count " << n << ", offset " << offset);
  test::Random random{n + offset};
  Ranks from(ranks, n, offset, random);
  if (hostile) {
    from.weights.front() = 0.0f;
    from.weights.back() = std::numeric_limits<float>::infinity();
  }
  Guarded<float> acc(n, offset), expected(n, 0), out(n, offset), expected_out(n, 0);
  hostile ? test::FillHostile(acc, random) : test::FillFinite(acc, random);
  for (size_t i = 0; i < n; i++) expected[i] = acc[i];
  kernels::UnpackAverage(from.bits.data(), from.weights.data(), ranks, n, acc.data());
  kernels::UnpackAverageReference(from.bits.data(), from.weights.data(), ranks, n, expected.data());
  EXPECT_TRUE(Equal(acc, expected));
  kernels::UnpackSum(from.bits.data(), from.weights.data(), ranks, n, out.data());
  kernels::UnpackSumReference(from.bits.data(), from.weights.data(), ranks, n, expected_out.data());
  EXPECT_TRUE(Equal(out, expected_out));
}

TEST_P(Unpack, EqualsTheDefinition) {
  for (const size_t n : test::Counts()) {
    for (const size_t offset : {0, 1, 3}) {
      for (const int ranks : {1, 2, 3, 4, 9}) Compare(ranks, n, offset, false);
    }
  }
}

TEST_P(Unpack, ManyRanksAndHostileValues) {
  for (const size_t n : {size_t{63}, size_t{64}, size_t{65}, size_t{1001}}) {
    Compare(16, n, 0, true);
    Compare(33, n, 1, true);
    Compare(64, n, 3, false);
  }
}

TEST_P(Unpack, OneRank) {
  for (const size_t n : test::Counts()) {
    test::Random random{n};
    Ranks from(1, n, n % 3, random);
    Guarded<float> out(n, n % 5), expected(n, 0);
    kernels::UnpackSigns(from.bits[0], 0.577f, n, out.data());
    kernels::UnpackSignsReference(from.bits[0], 0.577f, n, expected.data());
    EXPECT_TRUE(Equal(out, expected)) << "count " << n;
    for (const size_t offset : {0, 1}) {
      Guarded<float> streamed(n, offset);
      kernels::UnpackSignsStream(from.bits[0], 0.577f, n, streamed.data());
      EXPECT_TRUE(Equal(streamed, expected)) << "count " << n << ", offset " << offset;
    }
  }
}

// From 4 Mi values on, aligned outputs are stored past the caches.
TEST_P(Unpack, LargeOutputs) {
  constexpr size_t kCount = (size_t{1} << 22) + 37;
  test::Random random{1};
  Ranks from(2, kCount, 0, random);
  Guarded<float> expected(kCount, 0);
  kernels::UnpackSumReference(from.bits.data(), from.weights.data(), 2, kCount, expected.data());
  for (const size_t offset : {0, 1}) {
    Guarded<float> out(kCount, offset);
    kernels::UnpackSum(from.bits.data(), from.weights.data(), 2, kCount, out.data());
    EXPECT_TRUE(Equal(out, expected)) << "offset " << offset;
  }
}

}  // namespace
}  // namespace bitrail
