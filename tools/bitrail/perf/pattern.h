// Data that every rank can predict, so that results are checked without a second exchange.
//
// Element i of rank r is 1 + (i + 3 r) mod 7: small whole numbers, exact in every type, whose
// results over the ranks repeat every 7 elements.
#pragma once

#include <bitrail/bitrail.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace bitrail::tool {

constexpr int kPeriod = 7;

// The raw bits of the 7 values that an array repeats, starting with element 0.
using Cycle = std::array<uint64_t, kPeriod>;

Cycle rank_values(bitrail_type_t type, int rank);
Cycle reduced_values(bitrail_type_t type, bitrail_op_t op, int world_size);

// data[k] = cycle[(first + k) mod 7].
void fill(bitrail_type_t type, const Cycle& cycle, size_t first, size_t count, void* data);
// How many of data[k] differ from that by more than `ulps` units in the last place.
size_t count_wrong(bitrail_type_t type, const Cycle& cycle, size_t first, size_t count,
                   const void* data, uint64_t ulps);

// Uniform in [-1, 1), half of it common to all ranks: what a sign code is measured on.
void fill_random(bitrail_type_t type, int rank, size_t count, void* data);
// Raw elements as float32; FLOAT32, FLOAT16 and BFLOAT16 only.
void to_float(bitrail_type_t type, const void* data, size_t count, float* out);

}  // namespace bitrail::tool
