// All ranks learn how all ranks fared.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/common/status.h"

namespace bitrail::checkpoint {

using Words = std::array<uint64_t, 2>;

// Collective. OK when `own` is OK on all ranks, otherwise the failure of the lowest rank that
// failed, "rank 2: ..." in front, on all ranks. *all (ranks) holds every rank's words in both
// cases. *reached (may be NULL) tells whether the ranks could talk at all: when false, *all is
// unchanged and other ranks may believe that all is well. `comm` NULL: one rank alone.
Status Agree(bitrail_comm_t comm, const Status& own, const Words& words, std::vector<Words>* all,
             bool* reached = nullptr);

}  // namespace bitrail::checkpoint
