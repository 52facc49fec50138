// `bitrail bench checkpoint`: saving a checkpoint against writing and syncing the same bytes.
#pragma once

#include <cstdint>
#include <string>

namespace bitrail::tools {

// State of 1-bit Adam for `parameters` parameters: parameters, momentum and variance, replicated;
// worker and server errors of each rank. Saved into `directory` (made if it is not there, left
// empty) `rounds` times, in turn with a loop that writes each rank's share into one file and syncs
// it. Collective when started by a launcher; rank 0 prints one JSON object: ranks, bytes (all
// ranks), and lists of seconds "save", "replace" (over an older one), "write" and "load" (open,
// verify, read). Returns the exit status: 0, or 1 when something failed.
int BenchCheckpoint(const std::string& directory, uint64_t parameters, int rounds);

}  // namespace bitrail::tools
