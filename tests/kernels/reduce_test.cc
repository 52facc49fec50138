#include "kernels/host/reduce.h"

#include "kernels/host/convert.h"
#include "tests/kernels/checked.h"

namespace bitrail {
namespace {

using kernels::Op;
using kernels::Type;
using test::Guarded;

class Reduce : public test::OnEachTarget {};
BITRAIL_ON_EACH_TARGET(Reduce);

constexpr Op kOps[] = {Op::sum, Op::min, Op::max};

template <typename T>
void Fill(Guarded<T>& array, Type, test::Random& random) {
  if constexpr (std::is_floating_point_v<T>) {
    test::FillHostile(array, random);
  } else {
    test::FillBits(array, random);
  }
}

// 16-bit floats: hostile values rounded, since random bits would be NaN far too often.
template <>
void Fill(Guarded<uint16_t>& array, Type type, test::Random& random) {
  Guarded<float> values(array.size(), 0);
  test::FillHostile(values, random);
  const auto narrow = type == Type::float16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
  narrow(values.data(), values.size(), array.data());
}

bool IsNan(uint16_t bits, Type type) {
  return (bits & 0x7fff) > (type == Type::float16 ? 0x7c00 : 0x7f80);
}

template <typename T>
::testing::AssertionResult EqualValues(Guarded<T>& got, Guarded<T>& want, Type type) {
  if constexpr (std::is_same_v<T, uint16_t>) {  // any NaN equals any NaN
    for (size_t i = 0; i < want.size(); i++) {
      if (IsNan(got[i], type) && IsNan(want[i], type)) got[i] = want[i];
    }
  }
  return test::Equal(got, want);
}

template <typename T>
void Compare(Type type, Op op, int count, size_t n, size_t offset) {
  SCOPED_TRACE(testing::Message() << "type " << +static_cast<uint8_t>(type) << ", op "
                                  << +static_cast<uint8_t>(op) << ", " << count
                                  << " sources, count " << n << ", offset " << offset);
  test::Random random{n * 64 + static_cast<uint64_t>(count)};
  std::vector<Guarded<T>> sources;
  for (int k = 0; k < count; k++) {
    sources.emplace_back(n, offset * static_cast<size_t>(k % 2));
    Fill(sources.back(), type, random);
  }
  std::vector<const void*> pointers;
  for (auto& source : sources) pointers.push_back(source.data());
  Guarded<T> out(n, offset), expected(n, 0);
  kernels::FindReduceReference(type, op)(pointers.data(), count, n, expected.data());
  const kernels::ReduceFunction reduce = kernels::FindReduce(type, op);
  reduce(pointers.data(), count, n, out.data());
  EXPECT_TRUE(EqualValues(out, expected, type));
  // In place, over each source in turn while the others stay as they are.
  const size_t last = sources.size() - 1;
  for (const size_t target : {size_t{0}, last}) {
    Guarded<T> copy(n, offset);
    for (size_t i = 0; i < n; i++) copy[i] = sources[target][i];
    std::vector<const void*> in_place = pointers;
    in_place[target] = copy.data();
    reduce(in_place.data(), count, n, copy.data());
    EXPECT_TRUE(EqualValues(copy, expected, type)) << "in place of source " << target;
  }
  for (auto& source : sources) EXPECT_TRUE(source.Intact());
}

template <typename T>
void CompareAll(Type type) {
  for (const Op op : kOps) {
    ASSERT_NE(kernels::FindReduce(type, op), nullptr);
    for (const size_t n : test::Counts()) Compare<T>(type, op, 2, n, n % 3);
    for (int count = 1; count <= 9; count++) {
      for (const size_t n : {size_t{1}, size_t{63}, size_t{257}}) {
        Compare<T>(type, op, count, n, 1);
      }
    }
    Compare<T>(type, op, 3, 100'003, 0);
  }
}

TEST_P(Reduce, Float32) { CompareAll<float>(Type::float32); }
TEST_P(Reduce, Float16) { CompareAll<uint16_t>(Type::float16); }
TEST_P(Reduce, BFloat16) { CompareAll<uint16_t>(Type::bfloat16); }
TEST_P(Reduce, Float64) { CompareAll<double>(Type::float64); }
TEST_P(Reduce, Int32) { CompareAll<int32_t>(Type::int32); }
TEST_P(Reduce, Int64) { CompareAll<int64_t>(Type::int64); }
TEST_P(Reduce, Uint8) { CompareAll<uint8_t>(Type::uint8); }

TEST_P(Reduce, NanInAnySourceStays) {
  for (const Op op : kOps) {
    for (int place = 0; place < 3; place++) {
      Guarded<float> a(100, 0), b(100, 0), c(100, 0), out(100, 0);
      for (size_t i = 0; i < 100; i++) a[i] = b[i] = c[i] = 1;
      Guarded<float>* arrays[] = {&a, &b, &c};
      for (size_t i = 0; i < 100; i++) (*arrays[place])[i] = std::nanf("");
      const void* sources[] = {a.data(), b.data(), c.data()};
      kernels::FindReduce(Type::float32, op)(sources, 3, 100, out.data());
      for (size_t i = 0; i < 100; i++) EXPECT_TRUE(std::isnan(out[i]));
    }
  }
}

// 2048 + 1 + 1 in float16 stays 2048 when rounded at each step.
TEST_P(Reduce, HalvesRoundOnce) {
  uint16_t large = 0x6800, one = 0x3c00, out = 0;
  const void* sources[] = {&large, &one, &one};
  kernels::FindReduce(Type::float16, Op::sum)(sources, 3, 1, &out);
  EXPECT_EQ(out, 0x6801);  // 2050
}

template <typename T>
void CompareMultiply(Type type, double factor) {
  const kernels::MultiplyFunction multiply = kernels::FindMultiply(type);
  ASSERT_NE(multiply, nullptr);
  for (const size_t n : test::Counts()) {
    test::Random random{n};
    Guarded<T> x(n, n % 4), expected(n, 0);
    Fill(x, type, random);
    for (size_t i = 0; i < n; i++) {
      if constexpr (std::is_same_v<T, uint16_t>) {
        const bool half = type == Type::float16;
        float value;
        (half ? kernels::HalfToFloatReference : kernels::BFloat16ToFloatReference)(&x[i], 1,
                                                                                   &value);
        value *= static_cast<float>(factor);
        (half ? kernels::FloatToHalfReference : kernels::FloatToBFloat16Reference)(&value, 1,
                                                                                   &expected[i]);
      } else {
        expected[i] = x[i] * static_cast<T>(factor);
      }
    }
    multiply(x.data(), n, factor);
    EXPECT_TRUE(EqualValues(x, expected, type)) << "count " << n;
  }
}

TEST_P(Reduce, Multiply) {
  CompareMultiply<float>(Type::float32, 1.0 / 3);
  CompareMultiply<double>(Type::float64, 1.0 / 3);
  CompareMultiply<uint16_t>(Type::float16, 1.0 / 3);
  CompareMultiply<uint16_t>(Type::bfloat16, 1.0 / 3);
  for (const Type type : {Type::int32, Type::int64, Type::uint8}) {
    EXPECT_EQ(kernels::FindMultiply(type), nullptr);
  }
}

}  // namespace
}  // namespace bitrail
