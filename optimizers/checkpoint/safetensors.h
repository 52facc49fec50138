// A shard: a file in the safetensors format (https://github.com/huggingface/safetensors).
//
//   8 bytes        N, length of the header, little endian
//   N bytes        JSON: name -> {dtype, shape, data_offsets}, and __metadata__ (string -> string)
//   the rest       the tensors' bytes, without holes, offsets counted from here
//
// __metadata__ carries what the format has no place for: "rank", "world_size", "generation", and
// for each tensor "begin NAME" (first element of the slice that this shard holds) and "xxh3 NAME"
// (checksums of its bytes by pieces of kPiece, 16 hexadecimal digits each).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "optimizers/checkpoint/content.h"

namespace bitrail::checkpoint {

// Bytes under one checksum: small enough to stay in the cache between checksum and write, and to
// read alone; large enough that the list of checksums is short. Part of the format.
constexpr uint64_t kPiece = uint64_t{1} << 20;

// "F32", "F16", "BF16", "U8", "I64". NULL: no element type.
const char* ElementName(Element type);
bool ElementFromName(std::string_view name, Element* type);

struct ShardTensor {
  std::string name;
  Element type = Element::float32;
  std::vector<uint64_t> shape;   // of what this shard holds
  uint64_t begin = 0;            // its first element in the whole tensor; 0 for a per-rank one
  uint64_t at = 0, bytes = 0;    // in the data
  std::vector<uint64_t> checks;  // (Pieces(bytes))
};

struct ShardHeader {
  int rank = 0, world_size = 1;
  uint64_t generation = 0;
  std::vector<ShardTensor> tensors;  // in order of `at`
  uint64_t data_bytes = 0;
};

inline uint64_t Pieces(uint64_t bytes) { return (bytes + kPiece - 1) / kPiece; }

// Sets at, bytes and the number of checks from types and shapes, larger elements first so that all
// lie aligned.
void LayOut(ShardHeader* header);

// N and the header, filled up with spaces to a multiple of 4,096 bytes. The length depends on all
// but the values of the checks, so that the data may be written first.
Status BuildHeader(const ShardHeader& header, std::string* text);

// Parses the JSON part. Any bytes may come in; what comes out is consistent: offsets without holes
// or overlap, sizes that fit shapes, one check a piece.
Status ParseHeader(std::string_view text, ShardHeader* header);

}  // namespace bitrail::checkpoint
