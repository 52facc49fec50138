// Writing whole files through a FileOps table; every failure names operation, path and reason.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "optimizers/checkpoint/file_ops.h"
#include "optimizers/checkpoint/safetensors.h"

namespace bitrail::checkpoint {

// BITRAIL_ERR_SYSTEM "write /dir/file: No space left on device" for error < 0, else OK.
Status Check(int64_t error, const char* operation, const std::string& path);

// Makes the directory and what is missing above it, durably.
Status MakeDirs(const FileOps& files, const std::string& path);

// Writes and syncs a shard: `header` (laid out) and data[i], the elements of header->tensors[i].
// Fills in the checks and sets *checksum to the header's. A file that failed is gone again.
Status WriteShard(const FileOps& files, const std::string& path, ShardHeader* header,
                  const std::vector<const void*>& data, uint64_t* checksum);

// Writes and syncs a small file. A file that failed is gone again.
Status WriteText(const FileOps& files, const std::string& path, std::string_view text);

}  // namespace bitrail::checkpoint
