// Resolves nested schedules (kind `call`), so that everybody behind sees one flat DAG.
//
// What a nested schedule's things become in the caller's:
//   buffer b   nested_buffers[b]; those beyond the list (its scratch) become new buffers
//   rank p     attributes[p], or p when the call has no attributes
//   message m  m + the call's message; the caller keeps calls of one pair of ranks apart
//   edges      whatever has no edge inside comes after the call's edges; whatever comes after the
//              call comes after everything inside that nothing inside waits for
#pragma once

#include "runtime/schedule/schedule.h"

namespace bitrail::schedule {

// Nested schedules may nest further. A schedule without calls comes back as it is.
Schedule flatten(const Schedule& schedule);

}  // namespace bitrail::schedule
