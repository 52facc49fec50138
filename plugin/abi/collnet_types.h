// What NCCL and a CollNet plugin say to each other beyond the net's: element types, operations,
// parts of a gather or scatter.
#pragma once

#include "plugin/abi/properties.h"

namespace bitrail::nccl {

enum DataType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8e4m3 = 10,
  kFloat8e5m2 = 11,
};

// NCCL asks for the first four; averages come as sums of scaled values.
enum Reduction : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };

struct PartV8 {
  void* memory;
  void* address;
  uint32_t bytes;
};
static_assert(sizeof(PartV8) == 24 && offsetof(PartV8, address) == 8 &&
              offsetof(PartV8, bytes) == 16);

struct PartV9 {
  void* memory;
  void* address;
  size_t bytes;
};
static_assert(sizeof(PartV9) == 24 && offsetof(PartV9, address) == 8 &&
              offsetof(PartV9, bytes) == 16);

}  // namespace bitrail::nccl
