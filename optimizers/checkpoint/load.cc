#include "optimizers/checkpoint/load.h"

#include <algorithm>

#include "optimizers/checkpoint/agree.h"
#include "optimizers/checkpoint/checksum.h"
#include "optimizers/checkpoint/json_text.h"
#include "optimizers/checkpoint/read_file.h"

namespace bitrail::checkpoint {
namespace {

Status ReadManifest(Checkpoint* checkpoint, uint64_t* checksum) {
  const std::string path = checkpoint->directory + "/" + kManifestName;
  std::string text;
  BITRAIL_TRY(ReadText(path, kMaxJsonBytes, &text));
  *checksum = Checksum(text.data(), text.size());
  const Status status = ParseManifest(text, &checkpoint->manifest);
  if (!status.ok()) return failure(status.code(), "{}: {}", path, status.text());
  return {};
}

const ShardTensor* FindIn(const Checkpoint::Shard& shard, const std::string& name) {
  for (const ShardTensor& tensor : shard.header.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// Elements of a shard's tensor; the header's parser bounds the product.
uint64_t Elements(const ShardTensor& tensor) { return tensor.bytes / ElementBytes(tensor.type); }

// That a shard holds the manifest's tensors, its slices of the replicated ones.
Status CheckShard(const Checkpoint& checkpoint, int rank) {
  const Manifest& manifest = checkpoint.manifest;
  const Checkpoint::Shard& shard = checkpoint.shards[static_cast<size_t>(rank)];
  const ShardHeader& header = shard.header;
  if (header.rank != rank || header.world_size != manifest.world_size ||
      header.generation != manifest.generation ||
      header.tensors.size() != manifest.tensors.size()) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} is another checkpoint's shard", shard.path);
  }
  for (const TensorInfo& info : manifest.tensors) {
    const ShardTensor* tensor = FindIn(shard, info.name);
    bool fits = tensor != nullptr && tensor->type == info.type;
    if (fits && info.spread == Spread::replicated) {
      const Slice slice = SliceOf(Count(info.shape), rank, manifest.world_size);
      fits = tensor->begin == slice.begin && Elements(*tensor) == slice.end - slice.begin;
    }
    if (fits) continue;
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "{}: tensor {} is missing or not as {} describes it", shard.path, info.name,
                   kManifestName);
  }
  return {};
}

Status ReadHeaders(Checkpoint* checkpoint) {
  const Manifest& manifest = checkpoint->manifest;
  std::string absent;
  checkpoint->shards.resize(manifest.shards.size());
  for (size_t i = 0; i < manifest.shards.size(); i++) {
    const std::string name =
        ShardName(static_cast<int>(i), manifest.world_size, manifest.generation);
    Checkpoint::Shard& shard = checkpoint->shards[i];
    shard.path = checkpoint->directory + "/" + name;
    bool missing = false;
    const Status status = ReadShardHeader(manifest.shards[i], &shard, &missing);
    if (missing) {
      absent += (absent.empty() ? "" : ", ") + name;
      continue;
    }
    BITRAIL_TRY(status);
    BITRAIL_TRY(CheckShard(*checkpoint, static_cast<int>(i)));
  }
  if (absent.empty()) return {};
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: missing shards: {}", checkpoint->directory,
                 absent);
}

// This rank's part of all tensors of all shards, in turn.
Status VerifyOwn(Checkpoint* checkpoint, int rank, int world) {
  int turn = 0;
  for (const Checkpoint::Shard& shard : checkpoint->shards) {
    for (const ShardTensor& tensor : shard.header.tensors) {
      if (turn++ % world != rank) continue;
      BITRAIL_TRY(ReadBytes(*checkpoint, shard, tensor, 0, tensor.bytes, nullptr));
    }
  }
  return {};
}

Status WrongTensor(const Checkpoint& checkpoint, const std::string& name) {
  return failure(BITRAIL_ERR_MISMATCH,
                 "{}: there is no tensor {} of the wanted element type and length",
                 checkpoint.directory, name);
}

template <typename T>
bool GetAs(const Scalars& scalars, const std::string& name, T* value) {
  const auto found = scalars.find(name);
  const T* held = found == scalars.end() ? nullptr : std::get_if<T>(&found->second);
  if (held != nullptr) *value = *held;
  return held != nullptr;
}

}  // namespace

Status Open(bitrail_comm_t comm, const std::string& directory, Checkpoint* checkpoint) {
  *checkpoint = Checkpoint();
  checkpoint->directory = directory;
  uint64_t checksum = 0;
  Status own = ReadManifest(checkpoint, &checksum);
  if (own.ok()) own = ReadHeaders(checkpoint);
  std::vector<Words> all;
  BITRAIL_TRY(Agree(comm, own, {checksum, 0}, &all));
  for (size_t rank = 1; rank < all.size(); rank++) {
    if (all[rank][0] != all[0][0]) {
      return failure(BITRAIL_ERR_MISMATCH, "rank {} reads another checkpoint than rank 0 in {}",
                     rank, directory);
    }
  }
  const int rank = comm == nullptr ? 0 : bitrail_comm_rank(comm);
  own = VerifyOwn(checkpoint, rank, static_cast<int>(all.size()));
  return Agree(comm, own, {}, &all);
}

Status CheckModel(const Checkpoint& checkpoint, const std::string& optimizer,
                  const std::vector<ModelTensor>& model) {
  const Manifest& manifest = checkpoint.manifest;
  if (manifest.optimizer != optimizer) {
    return failure(BITRAIL_ERR_MISMATCH, "{} is a checkpoint of {}, not of {}",
                   checkpoint.directory, manifest.optimizer, optimizer);
  }
  const auto text = [](const std::vector<ModelTensor>& tensors, size_t i) {
    if (i >= tensors.size()) return std::string("no tensor");
    return fmt::format("{} of {} elements", tensors[i].name, tensors[i].count);
  };
  for (size_t i = 0; i < std::max(model.size(), manifest.model.size()); i++) {
    if (i < model.size() && i < manifest.model.size() && model[i] == manifest.model[i]) continue;
    return failure(BITRAIL_ERR_MISMATCH,
                   "{} is a checkpoint of another model: tensor {} is {} there, here {}",
                   checkpoint.directory, i, text(manifest.model, i), text(model, i));
  }
  return {};
}

const TensorInfo* Find(const Checkpoint& checkpoint, const std::string& name) {
  for (const TensorInfo& tensor : checkpoint.manifest.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

Status Read(Checkpoint& checkpoint, const std::string& name, Element type, uint64_t count,
            void* out) {
  const TensorInfo* info = Find(checkpoint, name);
  if (info == nullptr || info->spread != Spread::replicated || info->type != type ||
      Count(info->shape) != count) {
    return WrongTensor(checkpoint, name);
  }
  auto* to = static_cast<char*>(out);
  for (const Checkpoint::Shard& shard : checkpoint.shards) {
    const ShardTensor& tensor = *FindIn(shard, name);
    BITRAIL_TRY(ReadBytes(checkpoint, shard, tensor, 0, tensor.bytes, to));
    to += tensor.bytes;
  }
  return {};
}

Status ReadOfRank(Checkpoint& checkpoint, const std::string& name, int rank, Element type,
                  uint64_t begin, uint64_t count, void* out) {
  const TensorInfo* info = Find(checkpoint, name);
  const uint64_t elements = CountOfRank(checkpoint, name, rank);
  if (info == nullptr || info->spread != Spread::per_rank || info->type != type ||
      begin > elements || count > elements - begin) {
    return WrongTensor(checkpoint, name);
  }
  if (count == 0) return {};
  const Checkpoint::Shard& shard = checkpoint.shards[static_cast<size_t>(rank)];
  const uint64_t each = ElementBytes(type);
  return ReadBytes(checkpoint, shard, *FindIn(shard, name), begin * each, count * each, out);
}

uint64_t CountOfRank(const Checkpoint& checkpoint, const std::string& name, int rank) {
  if (rank < 0 || static_cast<size_t>(rank) >= checkpoint.shards.size()) return 0;
  const ShardTensor* tensor = FindIn(checkpoint.shards[static_cast<size_t>(rank)], name);
  return tensor == nullptr ? 0 : Elements(*tensor);
}

bool Get(const Scalars& scalars, const std::string& name, int64_t* value) {
  return GetAs(scalars, name, value);
}

bool Get(const Scalars& scalars, const std::string& name, double* value) {
  return GetAs(scalars, name, value);
}

bool Get(const Scalars& scalars, const std::string& name, std::string* value) {
  return GetAs(scalars, name, value);
}

}  // namespace bitrail::checkpoint
