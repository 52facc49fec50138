// Reading files; every failure names the path and what is wrong with it.
#pragma once

#include <string>

#include "optimizers/checkpoint/load.h"

namespace bitrail::checkpoint {

// Checks size, header and header checksum of shard->path against `info`, then parses the header.
// A file that is not there: BITRAIL_ERR_SYSTEM and *missing set.
Status ReadShardHeader(const ShardInfo& info, Checkpoint::Shard* shard, bool* missing);

// Reads a whole text file of at most `limit` bytes.
Status ReadText(const std::string& path, size_t limit, std::string* text);

// Reads bytes [begin, begin + bytes) of a tensor of `shard`, and verifies each piece that they
// touch before its bytes go to `out`. `out` NULL: verifies only. `checkpoint` lends the memory for
// a piece.
Status ReadBytes(Checkpoint& checkpoint, const Checkpoint::Shard& shard, const ShardTensor& tensor,
                 uint64_t begin, uint64_t bytes, void* out);

}  // namespace bitrail::checkpoint
