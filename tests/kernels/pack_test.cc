#include "kernels/host/pack.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using test::Equal;
using test::Guarded;

class Pack : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Pack);

// Runs both on copies of the same x and error; fills with `fill`.
template <typename Fill>
void Compare(size_t n, size_t offset, float scale, bool with_input, Fill fill) {
  SCOPED_TRACE(testing::Message() << "count " << n << ", offset " << offset << ", scale " << scale
                                  << ", input " << with_input);
  test::Random random{n * 31 + offset};
  Guarded<float> x(n, offset), error(n, offset / 2), expected_error(n, offset);
  Guarded<uint8_t> bits((n + 7) / 8, offset), expected_bits((n + 7) / 8, 0);
  fill(x, random);
  fill(error, random);
  Guarded<float> half_error(n, offset);
  Guarded<uint8_t> half_bits((n + 7) / 8, offset);
  for (size_t i = 0; i < n; i++) expected_error[i] = half_error[i] = error[i];
  const float* input = with_input ? x.data() : nullptr;
  if (offset == 1) {  // only the prefetch distance differs
    kernels::PackSignsAhead(input, scale, n, bits.data(), error.data(), 16384);
  } else {
    kernels::PackSigns(input, scale, n, bits.data(), error.data());
  }
  kernels::PackSignsReference(input, scale, n, expected_bits.data(), expected_error.data());
  EXPECT_TRUE(Equal(bits, expected_bits));
  EXPECT_TRUE(Equal(error, expected_error));
  // In two halves: the signs change nothing else, the residue follows from the same values.
  Guarded<float> untouched(n, offset);
  for (size_t i = 0; i < n; i++) untouched[i] = half_error[i];
  kernels::SignBits(input, half_error.data(), n, half_bits.data());
  EXPECT_TRUE(Equal(half_bits, expected_bits));
  EXPECT_TRUE(Equal(half_error, untouched));
  kernels::Residual(input, scale, n, half_error.data());
  EXPECT_TRUE(Equal(half_error, expected_error));
  EXPECT_TRUE(x.Intact());
}

TEST_P(Pack, EqualsTheDefinition) {
  for (const size_t n : test::Counts()) {
    for (const size_t offset : {0, 1, 3}) {
      for (const bool with_input : {true, false}) {
        Compare(n, offset, 0.577f, with_input, test::FillFinite<float>);
      }
    }
  }
}

TEST_P(Pack, HostileValuesAndScales) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float scale : {0.0f, 1e-45f, 3e38f, infinity, std::nanf("")}) {
    for (const size_t n : {size_t{7}, size_t{64}, size_t{200}, size_t{1029}}) {
      Compare(n, 1, scale, true, test::FillHostile<float>);
      Compare(n, 0, scale, false, test::FillHostile<float>);
    }
  }
}

TEST_P(Pack, ZeroCountsAsPlusAndBitsStartAtTheLowest) {
  Guarded<float> x(80, 0), error(80, 0);
  Guarded<uint8_t> bits(10, 0);
  for (size_t i = 0; i < 80; i++) {
    x[i] = i % 2 == 0 ? 0.0f : -0.0f;
    error[i] = -0.0f;
  }
  x[0] = x[8] = x[79] = -1.0f;
  kernels::PackSigns(x.data(), 0.25f, 80, bits.data(), error.data());
  EXPECT_EQ(bits[0], 0xfe);
  EXPECT_EQ(bits[1], 0xfe);
  EXPECT_EQ(bits[5], 0xff);
  EXPECT_EQ(bits[9], 0x7f);
  EXPECT_EQ(error[0], -0.75f);
  EXPECT_EQ(error[2], -0.25f);
}

}  // namespace
}  // namespace bitrail
