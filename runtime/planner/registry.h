// The table of algorithms: the built-in ones and those that modules add (BITRAIL_ALGO_PATH).
#pragma once

#include <string_view>
#include <vector>

#include "runtime/algorithms/algorithm.h"
#include "runtime/common/status.h"

namespace bitrail::planner {

using algorithms::Algorithm;
using algorithms::Request;
using schedule::Collective;

// Thread-safe. Pointers into the table stay valid for the life of the process.
//
// Adds an algorithm. BITRAIL_ERR_INVALID_ARGUMENT: without name, predicate or builder, with a name
// that BITRAIL_ALGO could not spell, or when the collective has one of that name.
Status register_algorithm(Algorithm algorithm);
// Null if there is none.
const Algorithm* find(Collective collective, std::string_view name);
// In the order of registration, the built-in ones first.
std::vector<const Algorithm*> algorithms_of(Collective collective);

}  // namespace bitrail::planner
