// What the 1-bit operations need to know beside the schedule: where the segments (tensors) of a
// call lie.
//
// The schedule sees P elements in W chunks of C = P / W. Segment t is padded to P_t, a multiple of
// W * lcm(W, 8) as DeepSpeed pads (or of 8 W: tight), and gives C_t = P_t / W elements to every
// chunk; a chunk is the segments' parts one after the other. So one exchange carries all segments
// and each gets the numbers of a separate call. With block scales a chunk ends in padding up to a
// multiple of the block.
//
// Flat: W is the world size, every rank codes the whole vector and averages its own chunk. On rails
// (algorithms/onebit_hier.h): W is rails * nodes, and a rank that codes does so with the chunks of
// its rail only, from one of which it takes the average.
//
// Equations: reference compressed all-reduce of 1-bit Adam (arXiv 2102.02888); see docs/design.md.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::engine {

struct Segment {
  uint64_t count = 0;         // elements of the tensor
  uint64_t padded = 0;        // P_t
  uint64_t chunk = 0;         // C_t
  uint64_t input_offset = 0;  // first element in the caller's flat buffers
  uint64_t chunk_offset = 0;  // first element inside every chunk
};

struct OnebitLayout {
  int world_size = 1;             // W: chunks
  int rails = 0;                  // 0: flat
  std::vector<Segment> segments;  // a last one without elements when blocks need padding
  size_t tensors = 0;             // of them, the caller's
  uint64_t chunk = 0;             // C
  uint64_t elements = 0;          // all tensors, without padding
  uint64_t block = 0;             // values per scale; 0: one scale a segment
  bool l1 = false;                // mean of |b| instead of ||b||_2 / sqrt(length)
  // Segments are padded to 8 W only; padding has no error and no part in segment scales.
  bool tight = false;

  uint64_t padded() const { return chunk * static_cast<uint64_t>(world_size); }
  // Coded values in an average: of all ranks, or of a rail's nodes.
  int voices() const { return rails == 0 ? world_size : world_size / rails; }
  uint64_t scales() const { return block != 0 ? 0 : segments.size(); }
};

// Lays out tensors of `counts` elements. Fails when the sum overflows.
Status make_layout(int world_size, const std::vector<uint64_t>& counts, uint64_t block, bool l1,
                   OnebitLayout* layout, bool tight = false);

// Elements [begin, end) of the tensor that chunk `chunk` covers, cut to its length.
struct Cut {
  uint64_t begin = 0, end = 0;
};
Cut tensor_part(const Segment& segment, uint64_t chunk);
// How many elements the scale of that part is taken over.
uint64_t scaled_length(const OnebitLayout& layout, const Segment& segment, uint64_t chunk);

enum class OnebitMode : uint8_t { allreduce, reduce_scatter, allgather };

struct OnebitCall {
  const OnebitLayout* layout = nullptr;
  OnebitMode mode = OnebitMode::allreduce;
  // The chunks that this rank codes, and the one it averages.
  uint64_t first_chunk = 0, chunks = 0, own_chunk = 0;
  float node_factor = 1;  // rails: what a node's sum is multiplied with
  const void* send = nullptr;
  void* recv = nullptr;
  bitrail_type_t type = BITRAIL_FLOAT32;
  bitrail_produce_fn produce = nullptr;
  bitrail_consume_fn consume = nullptr;
  void* user = nullptr;
  std::vector<uint64_t>
      own_offset;           // by segment: first element of the own part in a chunk-only buffer
  std::vector<float> tile;  // kTile values
};

constexpr uint64_t kTile =
    4096;  // values converted or produced at a time: 16 KiB, half of a first-level cache

}  // namespace bitrail::engine
