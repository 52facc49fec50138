// Writes a checkpoint: a directory with one shard a rank and checkpoint.json (docs/checkpoints.md).
#pragma once

#include <string>

#include "optimizers/checkpoint/content.h"
#include "optimizers/checkpoint/file_ops.h"

namespace bitrail::checkpoint {

// Collective over `comm` (NULL: one rank alone). The directory and its parents are made as needed;
// all ranks see the same file system. A checkpoint that is there already is replaced in one
// instant: until then it stays loadable, and after a failure it is what is there. A failure on any
// rank is returned on all; the text names the rank, the file and the reason.
Status Save(bitrail_comm_t comm, const std::string& directory, const Content& content,
            const FileOps& files = SystemFiles());

}  // namespace bitrail::checkpoint
