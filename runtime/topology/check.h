// Whether a machine is consistent, and what is odd about it.
#pragma once

#include <string_view>

#include "runtime/common/status.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

// A text that may be shown: at most kMaxName bytes, no control characters.
bool printable(std::string_view text);

// Bounds, indices, tree without cycles, distinct bus ids, names and ranks, finite bandwidths.
// `where` begins the text of a failure.
Status check(const Machine& machine, const std::string& where);
// The same for a cluster; it has at least one node.
Status check(const Cluster& cluster, const std::string& where);

// Adds notes about what a user will want to know: GPUs without NICs, a port without a PCI path,
// one-sided NVLinks, links slower than what hangs on them.
void note_oddities(Machine* machine);
// One note; beyond kMaxNotes they are dropped.
void note(Machine* machine, std::string text);

}  // namespace bitrail::topology
