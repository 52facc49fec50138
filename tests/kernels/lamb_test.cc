#include "kernels/host/lamb.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using kernels::AdamFactors;
using kernels::LambSquares;
using test::Equal;
using test::Guarded;
using test::Same;

class Lamb : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Lamb);

constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

// State of an optimizer, twice.
struct State {
  Guarded<float> gradient, mask, m, v, x, fresh, expected_m, expected_v, expected_x, expected_fresh;
  State(size_t n, size_t offset, bool hostile)
      : gradient(n, offset),
        mask(n, 1),
        m(n, offset),
        v(n, offset / 2),
        x(n, offset),
        fresh(n, 3),
        expected_m(n, 0),
        expected_v(n, 0),
        expected_x(n, 0),
        expected_fresh(n, 0) {
    test::Random random{n + offset};
    for (auto* array : {&gradient, &m, &v, &x, &fresh})
      hostile ? test::FillHostile(*array, random) : test::FillFinite(*array, random);
    for (size_t i = 0; i < n; i++) {
      mask[i] = i % 3 == 0 ? 0.0f : 1.0f;
      v[i] = i % 5 == 0 ? 0.0f : std::fabs(v[i]);
      fresh[i] = std::fabs(fresh[i]);
      expected_m[i] = m[i];
      expected_v[i] = v[i];
      expected_x[i] = x[i];
      expected_fresh[i] = fresh[i];
    }
  }
  void Check() {
    EXPECT_TRUE(Equal(m, expected_m));
    EXPECT_TRUE(Equal(v, expected_v));
    EXPECT_TRUE(Equal(x, expected_x));
    EXPECT_TRUE(Equal(fresh, expected_fresh));
    EXPECT_TRUE(gradient.Intact());
  }
};

template <typename Visit>
void ForAll(bool may_be_hostile, Visit visit) {
  for (const size_t n : test::Counts()) {
    for (const bool guard : {false, true}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "count " << n << ", guard " << guard << ", mask " << masked);
        State state(n, n % 4, may_be_hostile && n % 2 == 0);
        const AdamFactors factors = {1e-3f, 0.9f, 0.999f, 1e-8f, masked ? 0.01f : 0.0f};
        visit(state, factors, masked ? state.mask.data() : nullptr, guard, n);
      }
    }
  }
}

void ExpectSame(const LambSquares& got, const LambSquares& want) {
  EXPECT_TRUE(Same(got.first, want.first)) << got.first << " instead of " << want.first;
  EXPECT_TRUE(Same(got.second, want.second)) << got.second << " instead of " << want.second;
}

// Sums too are the definition's bit for bit, on every instruction set.
TEST_P(Lamb, SumEqualsTheDefinition) {
  ForAll(true, [](State& s, const AdamFactors&, const float*, bool, size_t n) {
    EXPECT_TRUE(Same(kernels::OrderedSquaredSum(s.x.data(), n),
                     kernels::OrderedSquaredSumReference(s.x.data(), n)));
  });
}

TEST_P(Lamb, MomentsEqualTheDefinition) {
  ForAll(true, [](State& s, const AdamFactors& factors, const float*, bool guard, size_t n) {
    const LambSquares got = kernels::LambMoments(factors, kBeta1, kBeta2, n, s.gradient.data(),
                                                 s.m.data(), s.v.data(), s.x.data(), guard);
    const LambSquares want =
        kernels::LambMomentsReference(factors, kBeta1, kBeta2, n, s.gradient.data(),
                                      s.expected_m.data(), s.expected_v.data(), s.x.data(), guard);
    ExpectSame(got, want);
    s.Check();
  });
}

TEST_P(Lamb, UpdateAndDirectionsEqualTheDefinition) {
  ForAll(true, [](State& s, const AdamFactors& factors, const float*, bool guard, size_t n) {
    ExpectSame(
        kernels::LambDirections(factors, n, guard, s.m.data(), s.v.data(), s.x.data()),
        kernels::LambDirectionsReference(factors, n, guard, s.m.data(), s.v.data(), s.x.data()));
    kernels::LambUpdate(factors, 0.03f, n, guard, s.m.data(), s.v.data(), s.x.data());
    kernels::LambUpdateReference(factors, 0.03f, n, guard, s.m.data(), s.v.data(),
                                 s.expected_x.data());
    s.Check();
  });
}

// What comes out of an exchange is finite.
TEST_P(Lamb, FreshEqualsTheDefinition) {
  ForAll(false, [](State& s, const AdamFactors& factors, const float* mask, bool skip, size_t n) {
    const float got = kernels::LambFresh(factors, kBeta1, kBeta2, 0.3f, n, s.gradient.data(), mask,
                                         skip, s.m.data(), s.v.data(), s.fresh.data());
    const float want =
        kernels::LambFreshReference(factors, kBeta1, kBeta2, 0.3f, n, s.gradient.data(), mask, skip,
                                    s.expected_m.data(), s.v.data(), s.expected_fresh.data());
    EXPECT_EQ(got, want);
    s.Check();
  });
}

// By hand, so that kernel and plain loop cannot be wrong together.
TEST_P(Lamb, TwoElementsByHand) {
  const AdamFactors factors{0, 0.5f, 0.75f, 0.0f, 0.5f};
  float m[2] = {1, 0}, v[2] = {4, 0}, x[2] = {2, 3}, gradient[2] = {1, 2};
  // m = 1, 1; v = 3.25, 1; u = 1/sqrt(3.25) + 1, 1 + 1.5
  const LambSquares squares = kernels::LambMoments(factors, 0.5, 0.75, 2, gradient, m, v, x);
  EXPECT_FLOAT_EQ(m[1], 1);
  EXPECT_FLOAT_EQ(v[0], 3.25f);
  EXPECT_DOUBLE_EQ(squares.first, 13);
  const float u = 1 / std::sqrt(3.25f) + 1;
  EXPECT_FLOAT_EQ(static_cast<float>(squares.second), u * u + 6.25f);
  kernels::LambUpdate(factors, 2, 2, true, m, v, x);
  EXPECT_FLOAT_EQ(x[1], 3 - 2 * 2.5f);
  // m' = 2 * 0.5, 0; h = (1 - 0.5) / 0.5 = 1, -1; fresh = 0.25, 0.25; ratios sqrt(v) / 0.5
  float fresh[2] = {0, 0};
  const float values[2] = {2, 8}, mask[2] = {1, 0};
  v[0] = 0;
  EXPECT_FLOAT_EQ(kernels::LambFresh(factors, 0.5, 0.75, 0.5f, 2, values, mask, true, m, v, fresh),
                  2);
  EXPECT_FLOAT_EQ(m[0], 1);
  EXPECT_FLOAT_EQ(m[1], 0);
  EXPECT_FLOAT_EQ(fresh[0], 0.25f);
}

}  // namespace
}  // namespace bitrail
