#include "kernels/host/convert.h"

#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using test::Guarded;

class Convert : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Convert);

constexpr size_t kAll = 65536;

// Here NaN are compared by their bits, too: their payload is part of the definition.
void ExpectSameBits(Guarded<float>& got, Guarded<float>& want) {
  EXPECT_TRUE(got.Intact());
  for (size_t i = 0; i < want.size(); i++) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i])) << "element " << i;
  }
}

TEST_P(Convert, AllValuesOf16BitsBothWays) {
  Guarded<uint16_t> in(kAll, 0), back(kAll, 1);
  for (size_t i = 0; i < kAll; i++) in[i] = static_cast<uint16_t>(i);
  Guarded<float> wide(kAll, 1), expected(kAll, 0);

  kernels::HalfToFloat(in.data(), kAll, wide.data());
  kernels::HalfToFloatReference(in.data(), kAll, expected.data());
  ExpectSameBits(wide, expected);
  kernels::FloatToHalf(wide.data(), kAll, back.data());
  for (size_t i = 0; i < kAll; i++) {
    const bool is_nan = (i & 0x7fff) > 0x7c00;  // becomes quiet
    ASSERT_EQ(back[i], is_nan ? (i | 0x200) : i);
  }

  kernels::BFloat16ToFloat(in.data(), kAll, wide.data());
  kernels::BFloat16ToFloatReference(in.data(), kAll, expected.data());
  ExpectSameBits(wide, expected);
  kernels::FloatToBFloat16(wide.data(), kAll, back.data());
  for (size_t i = 0; i < kAll; i++) {
    const bool is_nan = (i & 0x7fff) > 0x7f80;
    ASSERT_EQ(back[i], is_nan ? (i | 0x40) : i);
  }
}

// IEEE 754 binary16 from its formula, as an independent definition of the values.
TEST(ConvertDefinition, HalfFollowsTheFormula) {
  Guarded<uint16_t> half(1, 0);
  Guarded<float> value(1, 0);
  for (uint32_t i = 0; i < kAll; i++) {
    half[0] = static_cast<uint16_t>(i);
    kernels::HalfToFloatReference(half.data(), 1, value.data());
    const uint32_t magnitude = i & 0x7fff;
    if (magnitude > 0x7c00) {
      ASSERT_TRUE(std::isnan(value[0]));
      continue;
    }
    const int exponent = static_cast<int>(magnitude >> 10);
    const int mantissa = static_cast<int>(magnitude & 0x3ff);
    double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (magnitude == 0x7c00) expected = std::numeric_limits<double>::infinity();
    if (i & 0x8000) expected = -expected;
    ASSERT_EQ(value[0], expected) << "half " << i;
    ASSERT_EQ(std::signbit(value[0]), (i & 0x8000) != 0);
  }
}

// Around every border between two neighbouring 16-bit values, and at it: ties go to even.
TEST_P(Convert, Rounding) {
  std::vector<float> values;
  Guarded<uint16_t> in(kAll, 0);
  for (size_t i = 0; i < kAll; i++) in[i] = static_cast<uint16_t>(i);
  Guarded<float> wide(kAll, 0);
  for (const auto widen : {kernels::HalfToFloat, kernels::BFloat16ToFloat}) {
    widen(in.data(), kAll, wide.data());
    for (size_t i = 0; i + 1 < kAll; i++) {
      const double middle = (static_cast<double>(wide[i]) + wide[i + 1]) / 2;
      const auto tie = static_cast<float>(middle);
      values.insert(values.end(), {tie, std::nextafterf(tie, 1e38f), std::nextafterf(tie, -1e38f)});
    }
  }
  values.insert(values.end(), {65503.99f, 65519.996f, 65520.0f, 65536.0f, 1e38f, 3.4e38f, 0x1p-25f,
                               -65520.0f, 1.0000001f * 0x1p-25f, 0x1p-149f, 0x1.ffp127f});
  const size_t n = values.size();
  Guarded<uint16_t> got(n, 0), want(n, 0);
  kernels::FloatToHalf(values.data(), n, got.data());
  kernels::FloatToHalfReference(values.data(), n, want.data());
  EXPECT_TRUE(test::Equal(got, want));
  kernels::FloatToBFloat16(values.data(), n, got.data());
  kernels::FloatToBFloat16Reference(values.data(), n, want.data());
  EXPECT_TRUE(test::Equal(got, want));
}

TEST(ConvertDefinition, RoundsToNearestEven) {
  const float in[] = {1.0f + 0x1p-11f, 1.0f + 0x3p-11f, 65519.0f, 65520.0f, 0x1p-25f, 0x3p-25f};
  const uint16_t half[] = {0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0002};
  uint16_t out[6];
  kernels::FloatToHalfReference(in, 6, out);
  for (int i = 0; i < 6; i++) EXPECT_EQ(out[i], half[i]) << i;
  const float in_b[] = {1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 3.4e38f, -1.0f};
  const uint16_t bfloat[] = {0x3f80, 0x3f82, 0x7f80, 0xbf80};
  kernels::FloatToBFloat16Reference(in_b, 4, out);
  for (int i = 0; i < 4; i++) EXPECT_EQ(out[i], bfloat[i]) << i;
}

TEST_P(Convert, EveryCount) {
  for (const size_t n : test::Counts()) {
    for (const size_t offset : {0, 1}) {
      SCOPED_TRACE(testing::Message() << "count " << n << ", offset " << offset);
      test::Random random{n};
      Guarded<uint16_t> in(n, offset), narrow(n, offset), expected_narrow(n, 0);
      Guarded<float> wide(n, offset), expected_wide(n, 0), floats(n, offset);
      test::FillBits(in, random);
      test::FillHostile(floats, random);
      kernels::HalfToFloat(in.data(), n, wide.data());
      kernels::HalfToFloatReference(in.data(), n, expected_wide.data());
      ExpectSameBits(wide, expected_wide);
      kernels::BFloat16ToFloat(in.data(), n, wide.data());
      kernels::BFloat16ToFloatReference(in.data(), n, expected_wide.data());
      ExpectSameBits(wide, expected_wide);
      kernels::FloatToHalf(floats.data(), n, narrow.data());
      kernels::FloatToHalfReference(floats.data(), n, expected_narrow.data());
      EXPECT_TRUE(test::Equal(narrow, expected_narrow));
      kernels::FloatToBFloat16(floats.data(), n, narrow.data());
      kernels::FloatToBFloat16Reference(floats.data(), n, expected_narrow.data());
      EXPECT_TRUE(test::Equal(narrow, expected_narrow));
    }
  }
}

}  // namespace
}  // namespace bitrail
