#include "runtime/schedule/collective.h"

#include <array>

namespace bitrail::schedule {

namespace {
constexpr std::array<const char*, kCollectives> kNames = {
    "allreduce",       "reduce_scatter", "allgather",        "broadcast",
    "alltoall",        "barrier",        "onebit_allreduce", "onebit_reduce_scatter",
    "onebit_allgather"};
}  // namespace

const char* collective_name(Collective collective) {
  return kNames[static_cast<size_t>(collective)];
}

bool parse_collective(std::string_view name, Collective* collective) {
  for (size_t i = 0; i < kNames.size(); i++)
    if (name == kNames[i]) {
      *collective = static_cast<Collective>(i);
      return true;
    }
  return false;
}

}  // namespace bitrail::schedule
