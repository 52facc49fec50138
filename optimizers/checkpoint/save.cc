// The order of operations, each step on all ranks before the next begins:
//
//   1. rank 0 makes the directory and chooses a generation that no file there has
//   2. every rank writes and syncs its shard of that generation, and syncs the directory
//   3. rank 0 writes and syncs checkpoint.json under another name, renames it, syncs the directory
//   4. rank 0 removes the shards of other generations
//
// Until the rename of step 3 checkpoint.json names the old shards, from then on the new ones.
#include "optimizers/checkpoint/save.h"

#include <algorithm>
#include <cerrno>

#include "optimizers/checkpoint/agree.h"
#include "optimizers/checkpoint/manifest.h"
#include "optimizers/checkpoint/write_file.h"

namespace bitrail::checkpoint {
namespace {

constexpr const char* kTemporary = "checkpoint.json.tmp";

struct Saving {
  const FileOps& files;
  const std::string& directory;
  const Content& content;
  int rank = 0, world = 1;
  Manifest manifest;

  std::string Path(const std::string& name) const { return directory + "/" + name; }
  std::string ShardPath() const { return Path(ShardName(rank, world, manifest.generation)); }
};

Status List(const Saving& saving, std::vector<std::string>* names) {
  return Check(saving.files.list(saving.files.user, saving.directory.c_str(), names), "read",
               saving.directory);
}

// Step 1.
Status Prepare(const Saving& saving, uint64_t* generation) {
  BITRAIL_TRY(MakeDirs(saving.files, saving.directory));
  std::vector<std::string> names;
  BITRAIL_TRY(List(saving, &names));
  uint64_t last = 0, found = 0;
  for (const std::string& name : names) {
    // The largest number is left out: it has no successor.
    if (GenerationOf(name, &found) && found != UINT64_MAX) last = std::max(last, found);
  }
  *generation = last + 1;
  return {};
}

// Step 1 for all ranks; compares what they want to save.
Status Begin(bitrail_comm_t comm, Saving* saving) {
  uint64_t fingerprint = 0, generation = 0;
  Status own = CheckContent(saving->content);
  if (own.ok()) {
    saving->manifest = Describe(saving->content, saving->world);
    own = Fingerprint(saving->manifest, &fingerprint);
  }
  if (own.ok() && saving->rank == 0) own = Prepare(*saving, &generation);
  std::vector<Words> all;
  BITRAIL_TRY(Agree(comm, own, {fingerprint, generation}, &all));
  for (size_t rank = 1; rank < all.size(); rank++) {
    if (all[rank][0] != all[0][0]) {
      return failure(BITRAIL_ERR_MISMATCH,
                     "checkpoint {}: rank {} saves another optimizer, step, scalars, model or "
                     "tensors than rank 0",
                     saving->directory, rank);
    }
  }
  saving->manifest.generation = all[0][1];
  return {};
}

// Step 2.
Status WriteOwn(const Saving& saving, ShardInfo* info) {
  ShardHeader header;
  header.rank = saving.rank;
  header.world_size = saving.world;
  header.generation = saving.manifest.generation;
  // In LayOut's order, beside their data.
  std::vector<const Tensor*> tensors;
  for (const Tensor& tensor : saving.content.tensors) tensors.push_back(&tensor);
  std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor* a, const Tensor* b) {
    return ElementBytes(a->type) > ElementBytes(b->type);
  });
  std::vector<const void*> data;
  for (const Tensor* tensor : tensors) {
    ShardTensor part{.name = tensor->name, .type = tensor->type, .shape = tensor->shape};
    if (tensor->spread == Spread::replicated && saving.world > 1) {
      const Slice slice = SliceOf(Count(tensor->shape), saving.rank, saving.world);
      part.begin = slice.begin;
      part.shape = {slice.end - slice.begin};
    }
    const auto* bytes = static_cast<const char*>(tensor->data);
    data.push_back(bytes == nullptr ? nullptr : bytes + part.begin * ElementBytes(part.type));
    header.tensors.push_back(std::move(part));
  }
  LayOut(&header);
  const std::string path = saving.ShardPath();
  BITRAIL_TRY(WriteShard(saving.files, path, &header, data, &info->header));
  std::string text;
  BITRAIL_TRY(BuildHeader(header, &text));
  info->bytes = text.size() + header.data_bytes;
  return Check(saving.files.sync_dir(saving.files.user, saving.directory.c_str()), "fsync",
               saving.directory);
}

// A directory that is another one on another host would make a checkpoint that nobody can load.
Status SeesAllShards(const Saving& saving) {
  std::vector<std::string> names;
  BITRAIL_TRY(List(saving, &names));
  for (int rank = 0; rank < saving.world; rank++) {
    const std::string name = ShardName(rank, saving.world, saving.manifest.generation);
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return failure(BITRAIL_ERR_SYSTEM,
                   "{} of rank {} is not in {}: the directory must be on a file system that all "
                   "ranks share",
                   name, rank, saving.directory);
  }
  return {};
}

// Step 3. *renamed: the new checkpoint is in place, if perhaps not durably.
Status Commit(const Saving& saving, bool* renamed) {
  BITRAIL_TRY(SeesAllShards(saving));
  std::string text;
  BITRAIL_TRY(BuildManifest(saving.manifest, &text));
  const FileOps& files = saving.files;
  const std::string temporary = saving.Path(kTemporary), name = saving.Path(kManifestName);
  BITRAIL_TRY(WriteText(files, temporary, text));
  Status status =
      Check(files.rename(files.user, temporary.c_str(), name.c_str()), "rename", temporary);
  if (!status.ok()) {
    (void)files.unlink(files.user, temporary.c_str());
    return status;
  }
  *renamed = true;
  return Check(files.sync_dir(files.user, saving.directory.c_str()), "fsync", saving.directory);
}

// Step 4. What cannot be removed does no harm; the next save tries again.
void RemoveOthers(const Saving& saving) {
  std::vector<std::string> names;
  if (!List(saving, &names).ok()) return;
  uint64_t generation = 0;
  for (const std::string& name : names) {
    if (!GenerationOf(name, &generation) || generation == saving.manifest.generation) continue;
    (void)saving.files.unlink(saving.files.user, saving.Path(name).c_str());
  }
}

void RemoveOwn(const Saving& saving) {
  (void)saving.files.unlink(saving.files.user, saving.ShardPath().c_str());
}

}  // namespace

Status Save(bitrail_comm_t comm, const std::string& directory, const Content& content,
            const FileOps& files) {
  Saving saving{files, directory, content};
  if (comm != nullptr) {
    saving.rank = bitrail_comm_rank(comm);
    saving.world = bitrail_comm_world_size(comm);
  }
  BITRAIL_TRY(Begin(comm, &saving));

  ShardInfo own;
  std::vector<Words> all;
  bool reached = false;
  const Status wrote = WriteOwn(saving, &own);
  Status all_wrote = Agree(comm, wrote, {own.bytes, own.header}, &all, &reached);
  if (!all_wrote.ok()) {
    // Ranks that did not hear each other leave their shards: rank 0 may be about to name them.
    if (reached || saving.rank == 0 || !wrote.ok()) RemoveOwn(saving);
    return all_wrote;
  }
  for (const Words& words : all) saving.manifest.shards.push_back({words[0], words[1]});

  bool renamed = false;
  const Status committed = saving.rank == 0 ? Commit(saving, &renamed) : Status();
  Status all_know = Agree(comm, committed, {renamed ? 1u : 0u, 0}, &all, &reached);
  if (committed.ok() && saving.rank == 0) RemoveOthers(saving);
  // Known not to be in place: the shards are of no use.
  if (saving.rank != 0 && reached) renamed = all[0][0] != 0;
  if (!all_know.ok() && !renamed && (saving.rank == 0 || reached)) RemoveOwn(saving);
  return all_know;
}

}  // namespace bitrail::checkpoint
