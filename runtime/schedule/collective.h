// What a schedule as a whole is to achieve, for the registry and for the verifier.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bitrail::schedule {

// Whole and part: Symbol kElements counts the whole. For reduce-scatter, all-gather and all-to-all
// that is world size x the caller's count, bound with quantum 1, so that chunk r is rank r's part.
// The 1-bit ones take n padded to a multiple of world size x quantum.
enum class Collective : uint8_t {
  allreduce,
  reduce_scatter,
  allgather,
  broadcast,
  alltoall,
  barrier,
  onebit_allreduce,
  onebit_reduce_scatter,
  onebit_allgather
};
constexpr int kCollectives = 9;

// "allreduce", "onebit_allreduce", ...
const char* collective_name(Collective collective);
bool parse_collective(std::string_view name, Collective* collective);

}  // namespace bitrail::schedule
