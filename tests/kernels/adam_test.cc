#include "kernels/host/adam.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using kernels::AdamFactors;
using test::Equal;
using test::Guarded;

class Adam : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Adam);

constexpr double kBeta1 = 0.9, kBeta2 = 0.999;

AdamFactors Factors(float weight_decay) { return {1e-3f, 0.9f, 0.999f, 1e-8f, weight_decay}; }

// State of an optimizer, twice.
struct State {
  Guarded<float> gradient, m, v, x, expected_m, expected_v, expected_x;
  State(size_t n, size_t offset, bool hostile)
      : gradient(n, offset),
        m(n, offset),
        v(n, offset / 2),
        x(n, offset),
        expected_m(n, 0),
        expected_v(n, 0),
        expected_x(n, 0) {
    test::Random random{n + offset};
    for (auto* array : {&gradient, &m, &v, &x}) {
      hostile ? test::FillHostile(*array, random) : test::FillFinite(*array, random);
    }
    for (size_t i = 0; i < n; i++) {
      v[i] = i % 5 == 0 ? 0.0f : std::fabs(v[i]);
      expected_m[i] = m[i];
      expected_v[i] = v[i];
      expected_x[i] = x[i];
    }
  }
  void Check() {
    EXPECT_TRUE(Equal(m, expected_m));
    EXPECT_TRUE(Equal(v, expected_v));
    EXPECT_TRUE(Equal(x, expected_x));
    EXPECT_TRUE(gradient.Intact());
  }
};

TEST_P(Adam, WarmUpStepEqualsTheDefinition) {
  for (const size_t n : test::Counts()) {
    for (const float weight_decay : {0.0f, 0.01f}) {
      SCOPED_TRACE(testing::Message() << "count " << n << ", weight decay " << weight_decay);
      State state(n, n % 4, n % 2 == 0);
      const AdamFactors factors = Factors(weight_decay);
      kernels::AdamStep(factors, kBeta1, kBeta2, n, state.gradient.data(), state.m.data(),
                        state.v.data(), state.x.data(), n % 3 == 0);
      kernels::AdamStepReference(factors, kBeta1, kBeta2, n, state.gradient.data(),
                                 state.expected_m.data(), state.expected_v.data(),
                                 state.expected_x.data(), n % 3 == 0);
      state.Check();
    }
  }
}

TEST_P(Adam, MomentumEqualsTheDefinitionAlsoInPlace) {
  for (const size_t n : test::Counts()) {
    State state(n, n % 3, n % 2 == 0);
    Guarded<float> out(n, 1), expected(n, 0);
    kernels::MomentumReference(kBeta1, n, state.gradient.data(), state.m.data(), expected.data());
    kernels::Momentum(kBeta1, n, state.gradient.data(), state.m.data(), out.data());
    EXPECT_TRUE(Equal(out, expected)) << "count " << n;
    kernels::Momentum(kBeta1, n, state.gradient.data(), state.m.data(), state.m.data());
    EXPECT_TRUE(Equal(state.m, expected)) << "in place, count " << n;
  }
}

TEST_P(Adam, CompressedStepEqualsTheDefinition) {
  for (const size_t n : test::Counts()) {
    for (const bool guard : {false, true}) {
      for (const int variant : {0, 1, 2, 3}) {
        const bool masked = variant % 2 == 1, stream = variant >= 2;
        SCOPED_TRACE(testing::Message() << "count " << n << ", guard " << guard << ", mask "
                                        << masked << ", stream " << stream);
        State state(n, n % 4, n % 2 == 0);
        Guarded<float> mask(n, 1);
        for (size_t i = 0; i < n; i++) mask[i] = i % 3 == 0 ? 0.0f : 1.0f;
        const float* m = masked ? mask.data() : nullptr;
        const AdamFactors factors = Factors(guard ? 0.01f : 0.0f);
        kernels::OneBitAdamStep(factors, n, state.gradient.data(), m, guard, state.m.data(),
                                state.v.data(), state.x.data(), stream);
        kernels::OneBitAdamStepReference(factors, n, state.gradient.data(), m, guard,
                                         state.expected_m.data(), state.expected_v.data(),
                                         state.expected_x.data());
        state.Check();
      }
    }
  }
}

// By hand, so that kernel and plain loop cannot be wrong together.
TEST_P(Adam, OneElementByHand) {
  float m = 0.5f, v = 0.25f, x = 2.0f, gradient = 1.0f;
  const AdamFactors factors{0.1f, 0.5f, 0.75f, 0.0f, 0.5f};
  kernels::AdamStep(factors, 0.5, 0.75, 1, &gradient, &m, &v, &x);
  EXPECT_FLOAT_EQ(m, 0.75f);
  EXPECT_FLOAT_EQ(v, 0.4375f);
  EXPECT_FLOAT_EQ(x, 2.0f - 0.1f * (0.75f / std::sqrt(0.4375f) + 1.0f));
}

TEST_P(Adam, GuardLeavesParametersThatNeverHadAGradientToTheDecay) {
  for (const float weight_decay : {0.0f, 0.5f}) {
    Guarded<float> values(100, 0), m(100, 0), v(100, 0), x(100, 0);
    for (size_t i = 0; i < 100; i++) {
      values[i] = 1;
      m[i] = 0;
      v[i] = i % 2 == 0 ? 0.0f : 4.0f;
      x[i] = 3;
    }
    const AdamFactors factors{0.5f, 0.9f, 0.999f, 0.0f, weight_decay};
    kernels::OneBitAdamStep(factors, 100, values.data(), nullptr, true, m.data(), v.data(),
                            x.data());
    for (size_t i = 0; i < 100; i++) {
      EXPECT_EQ(m[i], 1.0f);
      const float u = (i % 2 == 0 ? 0.0f : 0.5f) + weight_decay * 3;
      EXPECT_EQ(x[i], 3 - 0.5f * u);
    }
  }
}

}  // namespace
}  // namespace bitrail
