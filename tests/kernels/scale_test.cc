#include "kernels/host/scale.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using test::Guarded;

class Scale : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Scale);

// Both sums add the same exact terms in float64; only the order differs.
void ExpectClose(double got, double want) { EXPECT_NEAR(got, want, 1e-12 * std::fabs(want)); }

TEST_P(Scale, EqualsTheDefinition) {
  for (const size_t n : test::Counts()) {
    for (const size_t offset : {0, 1, 3}) {
      SCOPED_TRACE(testing::Message() << "count " << n << ", offset " << offset);
      test::Random random{n};
      Guarded<float> x(n, offset), error(n, offset / 2);
      test::FillFinite(x, random);
      test::FillFinite(error, random);
      for (const float* e : {static_cast<const float*>(error.data()), (const float*)nullptr}) {
        ExpectClose(kernels::SquaredSum(x.data(), e, n),
                    kernels::SquaredSumReference(x.data(), e, n));
        ExpectClose(kernels::AbsoluteSum(x.data(), e, n),
                    kernels::AbsoluteSumReference(x.data(), e, n));
      }
    }
  }
}

TEST_P(Scale, MatchesLongDoubleOverManyValues) {
  constexpr size_t kCount = 1 << 20;
  test::Random random{5};
  Guarded<float> x(kCount, 0), error(kCount, 1);
  test::FillFinite(x, random);
  test::FillFinite(error, random);
  long double squares = 0, absolutes = 0;
  for (size_t i = 0; i < kCount; i++) {
    const long double b = x[i] + error[i];
    squares += b * b;
    absolutes += std::fabs(b);
  }
  ExpectClose(kernels::SquaredSum(x.data(), error.data(), kCount), static_cast<double>(squares));
  ExpectClose(kernels::AbsoluteSum(x.data(), error.data(), kCount), static_cast<double>(absolutes));
}

TEST_P(Scale, LargestAndSmallestFiniteValuesStayFinite) {
  for (const float value : {std::numeric_limits<float>::max(), -std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min()}) {
    Guarded<float> x(1000, 0);
    for (size_t i = 0; i < 1000; i++) x[i] = value;
    const double exact = value;
    ExpectClose(kernels::SquaredSum(x.data(), nullptr, 1000), 1000 * exact * exact);
    ExpectClose(kernels::AbsoluteSum(x.data(), nullptr, 1000), 1000 * std::fabs(exact));
    EXPECT_GT(kernels::SquaredSum(x.data(), nullptr, 1000), 0);
  }
}

TEST_P(Scale, OneBadValueAnywhereShows) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {std::nanf(""), infinity, -infinity}) {
    for (const size_t n : {size_t{1}, size_t{17}, size_t{100}}) {
      for (size_t at = 0; at < n; at++) {
        Guarded<float> x(n, 1), error(n, 0);
        for (size_t i = 0; i < n; i++) x[i] = error[i] = 1;
        (at % 2 == 0 ? x : error)[at] = bad;
        EXPECT_FALSE(std::isfinite(kernels::SquaredSum(x.data(), error.data(), n)));
        EXPECT_FALSE(std::isfinite(kernels::AbsoluteSum(x.data(), error.data(), n)));
      }
    }
  }
  // An overflow of the float32 sum x + e counts as Inf.
  const float largest = std::numeric_limits<float>::max();
  EXPECT_FALSE(std::isfinite(kernels::SquaredSum(&largest, &largest, 1)));
}

}  // namespace
}  // namespace bitrail
