// A machine in few bytes, for ranks to tell each other.
//
// Machines that are alike have equal bytes: what differs from one to the next of a kind (name,
// ranks, GUIDs, processor lists, notes) is left out, and bandwidths are rounded to MB/s.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/common/status.h"
#include "runtime/topology/model.h"

namespace bitrail::topology {

// `machine` has passed check().
std::vector<uint8_t> encode(const Machine& machine);
// Nothing about `bytes` is believed: what it yields has passed check(). `from` names who sent them.
Status decode(std::span<const uint8_t> bytes, const std::string& from, Machine* machine);
// XXH3 of encode(): equal for machines that are alike, the same on every host.
uint64_t hash(const Machine& machine);

}  // namespace bitrail::topology
