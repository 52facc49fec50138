// checkpoint.json: what the shards of a checkpoint are and belong to. Written last: a directory
// without it holds no checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "optimizers/checkpoint/content.h"

namespace bitrail::checkpoint {

constexpr uint64_t kFormat = 1;  // raised when an older BitRail could misread the files
constexpr const char* kManifestName = "checkpoint.json";

// A tensor of the checkpoint. Shape of the whole where it is replicated; empty for a per-rank one.
struct TensorInfo {
  std::string name;
  Element type = Element::float32;
  Spread spread = Spread::replicated;
  std::vector<uint64_t> shape;
  bool operator==(const TensorInfo&) const = default;
};

struct ShardInfo {
  uint64_t bytes = 0;   // of the file
  uint64_t header = 0;  // checksum of its first 8 + N bytes, which hold the data's checksums
};

struct Manifest {
  std::string version;  // BitRail's, for the reader's eyes
  std::string optimizer;
  int64_t step = 0;
  int world_size = 1;
  uint64_t generation = 0;  // of the shards' names; counts the saves into this directory
  Scalars scalars;
  std::vector<ModelTensor> model;
  std::vector<TensorInfo> tensors;
  std::vector<ShardInfo> shards;  // (world_size)
};

// "rank-00003-of-00004.7.safetensors": generation 7.
std::string ShardName(int rank, int world_size, uint64_t generation);
// Generation in a shard's name; false: it is no shard's name.
bool GenerationOf(std::string_view name, uint64_t* generation);

// The content's part of a manifest, without shards.
Manifest Describe(const Content& content, int world_size);
// Checksum of what must be the same on all ranks. Fails on text that is not UTF-8.
Status Fingerprint(const Manifest& manifest, uint64_t* checksum);

Status BuildManifest(const Manifest& manifest, std::string* text);
// Any bytes may come in; what comes out is consistent. A later format is named before anything else
// is looked at; a changed byte fails the checksum.
Status ParseManifest(std::string_view text, Manifest* manifest);

}  // namespace bitrail::checkpoint
