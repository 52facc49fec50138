#include "kernels/host/zero_one.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using kernels::AdamFactors;
using test::Equal;
using test::Guarded;

class ZeroOne : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(ZeroOne);

constexpr double kBeta1 = 0.9;

// State of an optimizer, twice.
struct State {
  Guarded<float> gradient, mask, m, v, x, base, expected_m, expected_x, expected_base;
  State(size_t n, size_t offset, bool hostile)
      : gradient(n, offset),
        mask(n, 1),
        m(n, offset),
        v(n, offset / 2),
        x(n, offset),
        base(n, 3),
        expected_m(n, 0),
        expected_x(n, 0),
        expected_base(n, 0) {
    test::Random random{n + offset};
    for (auto* array : {&gradient, &m, &v, &x, &base})
      hostile ? test::FillHostile(*array, random) : test::FillFinite(*array, random);
    for (size_t i = 0; i < n; i++) {
      mask[i] = i % 3 == 0 ? 0.0f : 1.0f;
      v[i] = i % 5 == 0 ? 0.0f : std::fabs(v[i]);
      expected_m[i] = m[i];
      expected_x[i] = x[i];
      expected_base[i] = base[i];
    }
  }
  void Check() {
    EXPECT_TRUE(Equal(m, expected_m));
    EXPECT_TRUE(Equal(x, expected_x));
    EXPECT_TRUE(Equal(base, expected_base));
    EXPECT_TRUE(gradient.Intact() && v.Intact());
  }
};

// Calls visit(state, factors, mask or null, guard) for many counts and all switches.
template <typename Visit>
void ForAll(Visit visit) {
  for (const size_t n : test::Counts()) {
    for (const bool guard : {false, true}) {
      for (const bool masked : {false, true}) {
        SCOPED_TRACE(testing::Message()
                     << "count " << n << ", guard " << guard << ", mask " << masked);
        State state(n, n % 4, n % 2 == 0);
        const AdamFactors factors = {1e-3f, 0.9f, 0.999f, 1e-8f, masked ? 0.01f : 0.0f};
        visit(state, factors, masked ? state.mask.data() : nullptr, guard, n);
      }
    }
  }
}

TEST_P(ZeroOne, MomentumStepEqualsTheDefinition) {
  ForAll([](State& s, const AdamFactors& factors, const float* mask, bool guard, size_t n) {
    kernels::MomentumStep(factors, kBeta1, n, s.gradient.data(), mask, guard, s.m.data(),
                          s.v.data(), s.x.data());
    kernels::MomentumStepReference(factors, kBeta1, n, s.gradient.data(), mask, guard,
                                   s.expected_m.data(), s.v.data(), s.expected_x.data());
    s.Check();
  });
}

TEST_P(ZeroOne, SyncValueEqualsTheDefinition) {
  ForAll([](State& s, const AdamFactors& factors, const float*, bool guard, size_t n) {
    Guarded<float> out(n, 1), expected(n, 0);
    kernels::SyncValue(factors, kBeta1, n, s.gradient.data(), s.m.data(), s.v.data(), s.x.data(),
                       s.base.data(), guard, out.data());
    kernels::SyncValueReference(factors, kBeta1, n, s.gradient.data(), s.m.data(), s.v.data(),
                                s.x.data(), s.base.data(), guard, expected.data());
    EXPECT_TRUE(Equal(out, expected));
    s.Check();
  });
}

TEST_P(ZeroOne, SyncStepEqualsTheDefinition) {
  ForAll([](State& s, const AdamFactors& factors, const float* mask, bool guard, size_t n) {
    kernels::SyncStep(factors, -250.0f, n, s.gradient.data(), mask, guard, s.m.data(), s.v.data(),
                      s.x.data(), s.base.data());
    kernels::SyncStepReference(factors, -250.0f, n, s.gradient.data(), mask, guard,
                               s.expected_m.data(), s.v.data(), s.expected_x.data(),
                               s.expected_base.data());
    s.Check();
  });
}

// By hand, so that kernel and plain loop cannot be wrong together: eps 0, sqrt(v) = 2.
TEST_P(ZeroOne, OneElementByHand) {
  float m = 0.5f, v = 4, x = 3, base = 2.5f, gradient = 1, out = 0;
  const AdamFactors factors{0.5f, 0.5f, 0.9f, 0.0f, 0.25f};
  // m' = 0.75, u = 0.375 + 0.75 = 1.125, x' = 2.4375
  kernels::SyncValue(factors, 0.5, 1, &gradient, &m, &v, &x, &base, true, &out);
  EXPECT_FLOAT_EQ(out, (2.4375f - 2.5f) * 2);
  kernels::MomentumStep(factors, 0.5, 1, &gradient, nullptr, true, &m, &v, &x);
  EXPECT_FLOAT_EQ(m, 0.75f);
  EXPECT_FLOAT_EQ(x, 2.4375f);
  const float mean = -0.5f;
  kernels::SyncStep(factors, -2.0f, 1, &mean, nullptr, true, &m, &v, &x, &base);
  EXPECT_FLOAT_EQ(m, 1.0f);
  EXPECT_FLOAT_EQ(x, 2.25f);
  EXPECT_FLOAT_EQ(base, 2.25f);
  v = 0;  // never a gradient: the decay alone
  kernels::SyncStep(factors, -2.0f, 1, &mean, nullptr, true, &m, &v, &x, &base);
  EXPECT_FLOAT_EQ(x, 2.25f - 0.5f * 0.25f * 2.25f);
  EXPECT_FLOAT_EQ(base, x);
}

}  // namespace
}  // namespace bitrail
