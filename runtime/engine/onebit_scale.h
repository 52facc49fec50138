// What the 1-bit executors share: ranges of chunks, blocks and their records, scales.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/engine/onebit_parts.h"
#include "runtime/engine/run.h"

namespace bitrail::engine {

// A range of one chunk: which, and from where to where inside it.
struct Stretch {
  uint64_t chunk = 0, begin = 0, end = 0;
};

inline Stretch stretch(const OnebitLayout& layout, const Span& span) {
  if (span.begin >= span.end) return {};
  const uint64_t chunk = span.begin / layout.chunk;
  return {chunk, span.begin - chunk * layout.chunk, span.end - chunk * layout.chunk};
}

inline float* floats(std::byte* bytes) { return reinterpret_cast<float*>(bytes); }
inline uint8_t* octets(std::byte* bytes) { return reinterpret_cast<uint8_t*>(bytes); }

inline float scale_of(const OnebitLayout& layout, double sum, uint64_t length) {
  if (length == 0) return 0;
  if (layout.l1) return static_cast<float>(sum / static_cast<double>(length));
  return static_cast<float>(static_cast<double>(static_cast<float>(std::sqrt(sum))) /
                            std::sqrt(static_cast<double>(length)));
}

// A record of block scales: the scales of its blocks, then its bits.
struct Record {
  std::byte* scales;
  uint8_t* bits;
};

inline Record record(const OnebitLayout& layout, std::byte* bytes, uint64_t elements) {
  const uint64_t blocks = (elements + layout.block - 1) / layout.block;
  return {bytes, octets(bytes) + blocks * sizeof(float)};
}

inline float stored_scale(const std::byte* scales, uint64_t index) {
  float scale;
  std::memcpy(&scale, scales + index * sizeof(float), sizeof(float));
  return scale;
}

inline void store_scale(std::byte* scales, uint64_t index, float scale) {
  std::memcpy(scales + index * sizeof(float), &scale, sizeof(float));
}

inline bool usable(float scale) { return std::isfinite(scale) && scale >= 0; }

// Calls visit(begin, end, block index) for the blocks of [begin, end) of a chunk.
template <typename Visit>
void for_each_block(const OnebitLayout& layout, uint64_t begin, uint64_t end, Visit visit) {
  uint64_t index = 0;
  for (uint64_t at = begin; at < end; at += layout.block, index++)
    visit(at, std::min(at + layout.block, end), index);
}

// Tight layouts: padding of a part has no error.
inline void clear_padding(const OnebitLayout& layout, const Part& part, uint64_t chunk,
                          float* error) {
  if (!layout.tight) return;
  const Cut cut = tensor_part(layout.segments[part.segment], chunk);
  const uint64_t valid = std::max(cut.end - cut.begin, part.begin) - part.begin;
  if (valid < part.length) std::fill(error + valid, error + part.length, 0.0f);
}

inline void fail(Run& run, bitrail_status_t code, const char* what) {
  if (run.status.ok()) run.status = Status(code, what);
}

}  // namespace bitrail::engine
