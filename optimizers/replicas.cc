#include "optimizers/replicas.h"

#include <cstring>
#include <string>
#include <vector>

#include "optimizers/exchange.h"

namespace bitrail::optimizers {
namespace {

constexpr uint64_t kMix = 0x9E3779B97F4A7C15u;

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kMix;
  return hash ^ (hash >> 32);
}

}  // namespace

Replicas MakeReplicas(bitrail_comm_t comm) {
  Replicas made;
  if (comm == nullptr || bitrail_comm_world_size(comm) == 1) return made;
  made.comm = comm;
  made.every = comm->settings.check_replicas;
  return made;
}

uint64_t ParameterHash(const float* x, size_t n) {
  uint64_t lanes[4] = {1, 2, 3, 4};  // four chains hide the latency of the multiplication
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t words[4];
    std::memcpy(words, x + i, sizeof words);
    for (int lane = 0; lane < 4; lane++) lanes[lane] = Mix(lanes[lane], words[lane]);
  }
  uint64_t hash = n;
  for (const uint64_t lane : lanes) hash = Mix(hash, lane);
  for (; i < n; i++) {
    uint32_t word;
    std::memcpy(&word, x + i, sizeof word);
    hash = Mix(hash, word);
  }
  return hash;
}

Status CheckReplicas(Replicas& replicas, const float* params, size_t n, int64_t step) {
  if (replicas.every == 0 || step - replicas.checked < replicas.every) return {};
  replicas.checked = step;
  const auto own = static_cast<int64_t>(ParameterHash(params, n));
  const int world = bitrail_comm_world_size(replicas.comm);
  std::vector<int64_t> all(static_cast<size_t>(world));
  BITRAIL_TRY(
      Checked(bitrail_allgather(replicas.comm, &own, all.data(), 1, BITRAIL_INT64, nullptr)));
  std::string differ;
  for (size_t rank = 1; rank < all.size(); rank++) {
    if (all[rank] == all[0]) continue;
    differ += (differ.empty() ? "" : ", ") + std::to_string(rank);
  }
  if (differ.empty()) return {};
  return failure(BITRAIL_ERR_MISMATCH,
                 "BITRAIL_CHECK_REPLICAS: after step {} the parameters of rank {} differ from rank "
                 "0's: some rank started from others, took another gradient or learning rate, or "
                 "changed them between steps",
                 step, differ);
}

}  // namespace bitrail::optimizers
