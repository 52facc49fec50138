#include "tools/bitrail/perf/pattern.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/host/convert.h"

namespace bitrail::tool {
namespace {

int value(int rank, int index) { return 1 + (index + 3 * rank) % kPeriod; }

uint64_t encode(bitrail_type_t type, double x) {
  const auto f = static_cast<float>(x);
  uint16_t bits = 0;
  switch (type) {
    case BITRAIL_FLOAT32:
      return std::bit_cast<uint32_t>(f);
    case BITRAIL_FLOAT16:
      kernels::FloatToHalf(&f, 1, &bits);
      return bits;
    case BITRAIL_BFLOAT16:
      kernels::FloatToBFloat16(&f, 1, &bits);
      return bits;
    case BITRAIL_FLOAT64:
      return std::bit_cast<uint64_t>(x);
    case BITRAIL_UINT8:
      return static_cast<uint64_t>(x) & 0xff;  // integer sums wrap
    default:
      return static_cast<uint64_t>(x);
  }
}

double reduce(bitrail_op_t op, int world_size, int index) {
  double result = value(0, index);
  for (int rank = 1; rank < world_size; rank++) {
    const double x = value(rank, index);
    if (op == BITRAIL_MIN)
      result = std::min(result, x);
    else if (op == BITRAIL_MAX)
      result = std::max(result, x);
    else
      result += x;
  }
  return op == BITRAIL_AVG ? result / world_size : result;
}

template <typename T>
void fill_raw(const Cycle& cycle, size_t first, size_t count, T* data) {
  for (size_t k = 0; k < count; k++) data[k] = static_cast<T>(cycle[(first + k) % kPeriod]);
}

template <typename T>
size_t count_wrong_raw(const Cycle& cycle, size_t first, size_t count, const T* data,
                       uint64_t ulps) {
  size_t wrong = 0;
  for (size_t k = 0; k < count; k++) {
    const uint64_t want = cycle[(first + k) % kPeriod], got = data[k];
    wrong += (want > got ? want - got : got - want) > ulps;
  }
  return wrong;
}

// splitmix64's finaliser: a good hash of a counter.
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

float uniform(uint64_t seed) {
  return static_cast<float>(static_cast<int64_t>(mix(seed)) >> 40) * (1.0F / (1 << 23));
}

}  // namespace

Cycle rank_values(bitrail_type_t type, int rank) {
  Cycle cycle;
  for (int i = 0; i < kPeriod; i++) cycle[i] = encode(type, value(rank, i));
  return cycle;
}

Cycle reduced_values(bitrail_type_t type, bitrail_op_t op, int world_size) {
  Cycle cycle;
  for (int i = 0; i < kPeriod; i++) cycle[i] = encode(type, reduce(op, world_size, i));
  return cycle;
}

void fill(bitrail_type_t type, const Cycle& cycle, size_t first, size_t count, void* data) {
  switch (bitrail_type_size(type)) {
    case 1:
      return fill_raw(cycle, first, count, static_cast<uint8_t*>(data));
    case 2:
      return fill_raw(cycle, first, count, static_cast<uint16_t*>(data));
    case 4:
      return fill_raw(cycle, first, count, static_cast<uint32_t*>(data));
    default:
      return fill_raw(cycle, first, count, static_cast<uint64_t*>(data));
  }
}

size_t count_wrong(bitrail_type_t type, const Cycle& cycle, size_t first, size_t count,
                   const void* data, uint64_t ulps) {
  switch (bitrail_type_size(type)) {
    case 1:
      return count_wrong_raw(cycle, first, count, static_cast<const uint8_t*>(data), ulps);
    case 2:
      return count_wrong_raw(cycle, first, count, static_cast<const uint16_t*>(data), ulps);
    case 4:
      return count_wrong_raw(cycle, first, count, static_cast<const uint32_t*>(data), ulps);
    default:
      return count_wrong_raw(cycle, first, count, static_cast<const uint64_t*>(data), ulps);
  }
}

void fill_random(bitrail_type_t type, int rank, size_t count, void* data) {
  std::vector<float> values(count);
  const uint64_t own = mix(static_cast<uint64_t>(rank) + 1);
  for (size_t i = 0; i < count; i++) values[i] = 0.5F * (uniform(2 * i + 1) + uniform(own + 2 * i));
  if (type == BITRAIL_FLOAT32)
    std::memcpy(data, values.data(), count * sizeof(float));
  else if (type == BITRAIL_FLOAT16)
    kernels::FloatToHalf(values.data(), count, static_cast<uint16_t*>(data));
  else
    kernels::FloatToBFloat16(values.data(), count, static_cast<uint16_t*>(data));
}

void to_float(bitrail_type_t type, const void* data, size_t count, float* out) {
  if (type == BITRAIL_FLOAT32)
    std::memcpy(out, data, count * sizeof(float));
  else if (type == BITRAIL_FLOAT16)
    kernels::HalfToFloat(static_cast<const uint16_t*>(data), count, out);
  else
    kernels::BFloat16ToFloat(static_cast<const uint16_t*>(data), count, out);
}

}  // namespace bitrail::tool
