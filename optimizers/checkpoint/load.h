// Opens and reads a checkpoint (docs/checkpoints.md). Nothing that fails a check is ever handed
// out.
#pragma once

#include <string>
#include <vector>

#include "optimizers/checkpoint/manifest.h"
#include "optimizers/checkpoint/safetensors.h"

namespace bitrail::checkpoint {

// An open checkpoint.
struct Checkpoint {
  struct Shard {
    std::string path;
    uint64_t data_at = 0;  // in the file
    ShardHeader header;
  };
  std::string directory;
  Manifest manifest;          // optimizer, step, scalars, model, tensors, world_size
  std::vector<Shard> shards;  // (manifest.world_size)

  // The piece that was read last, for reads smaller than a piece.
  std::vector<uint8_t> piece;
  const ShardTensor* piece_of = nullptr;
  uint64_t piece_index = 0;
};

// Collective over `comm` (NULL: one rank alone), whatever the world size of the checkpoint. Reads
// checkpoint.json and the shards' headers and verifies every byte of all shards, divided over the
// ranks, before any rank returns. Fails on all ranks alike; the text names the rank that saw it,
// the file, and what is missing, cut short, changed or of a later version.
Status Open(bitrail_comm_t comm, const std::string& directory, Checkpoint* checkpoint);

// Another model: BITRAIL_ERR_MISMATCH that names the first differing tensor with both counts.
// Another optimizer: likewise.
Status CheckModel(const Checkpoint& checkpoint, const std::string& optimizer,
                  const std::vector<ModelTensor>& model);

// The description of a tensor; NULL: the checkpoint has none of this name.
const TensorInfo* Find(const Checkpoint& checkpoint, const std::string& name);

// Reads a whole replicated tensor. `type` and `count` must be the tensor's: else
// BITRAIL_ERR_MISMATCH, as with a name that is not there. Local, not collective. After a failure
// `out` is undefined (the bytes changed since Open).
Status Read(Checkpoint& checkpoint, const std::string& name, Element type, uint64_t count,
            void* out);

// Reads elements [begin, begin + count) of the per-rank tensor that rank `rank` (of the
// checkpoint's world size) saved.
Status ReadOfRank(Checkpoint& checkpoint, const std::string& name, int rank, Element type,
                  uint64_t begin, uint64_t count, void* out);

// Elements of the per-rank tensor `name` of rank `rank`; 0: no such tensor.
uint64_t CountOfRank(const Checkpoint& checkpoint, const std::string& name, int rank);

// Scalars by name and type. False where there is none, or of another type; *value is then
// unchanged.
bool Get(const Scalars& scalars, const std::string& name, int64_t* value);
bool Get(const Scalars& scalars, const std::string& name, double* value);
bool Get(const Scalars& scalars, const std::string& name, std::string* value);

}  // namespace bitrail::checkpoint
