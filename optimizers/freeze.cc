#include "optimizers/freeze.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/scale.h"
#include "optimizers/exchange.h"
#include "runtime/trace/log.h"

namespace bitrail::optimizers {
namespace {

constexpr int64_t kLooks = 16;        // in `distance`: the norm costs a pass over the variance
constexpr int64_t kLeastLengths = 3;  // of 1/(1-beta2), before which the variance is still filling

// The ratio of the variance's norms now and `distance` steps ago, the smallest of all ranks'. The
// ranks' variances are equal, but their processors may add in another order.
Status Ratio(const Freeze& freeze, double* ratio) {
  const double a = freeze.norms.front(), b = freeze.norms.back();
  *ratio =
      a > 0 && b > 0 && std::isfinite(a) && std::isfinite(b) ? std::min(a, b) / std::max(a, b) : 0;
  if (bitrail_comm_world_size(freeze.comm) == 1) return {};
  return Checked(
      bitrail_allreduce(freeze.comm, ratio, ratio, 1, BITRAIL_FLOAT64, BITRAIL_MIN, nullptr));
}

Status Look(Freeze& freeze, const State& state, int64_t step, double* ratio) {
  *ratio = 0;
  if (step % freeze.stride != 0) return {};
  std::rotate(freeze.norms.begin(), freeze.norms.begin() + 1, freeze.norms.end());
  freeze.norms.back() = kernels::AbsoluteSum(state.v.data(), nullptr, state.elements());
  freeze.recorded++;
  if (freeze.recorded < static_cast<int64_t>(freeze.norms.size())) return {};
  if (step < kLeastLengths * freeze.distance) return {};
  return Ratio(freeze, ratio);
}

}  // namespace

void MakeFreeze(bitrail_comm_t comm, const Options& options, const State& state, const char* name,
                bool counts_training, Freeze* freeze) {
  const bitrail_optimizer_options_t& o = options.c;
  const int64_t init = options.init_counts() ? 1 : 0;
  freeze->comm = comm;
  freeze->name = name;
  freeze->mode = o.freeze;
  freeze->at = o.freeze_step + (counts_training ? init : 0);
  if (o.freeze == BITRAIL_FREEZE_SHARE) {
    const double steps = std::round(o.freeze_share * static_cast<double>(o.total_steps));
    freeze->at = std::max<int64_t>(static_cast<int64_t>(steps), 1) + init;
  }
  if (o.freeze != BITRAIL_FREEZE_AUTO) return;
  double beta2 = 0;
  for (const Group& group : state.groups) beta2 = std::max(beta2, group.beta2);
  freeze->threshold = o.freeze_threshold;
  freeze->distance = std::max<int64_t>(std::llround(1 / (1 - beta2)), 1);
  freeze->stride = std::max<int64_t>(freeze->distance / kLooks, 1);
  const int64_t lengths = (freeze->distance + freeze->stride - 1) / freeze->stride;
  freeze->norms.assign(static_cast<size_t>(lengths) + 1, 0.0);
}

Status Freeze::Update(const State& state, int64_t step) {
  if (mode != BITRAIL_FREEZE_AUTO) {
    if (step < at) return {};
    frozen_at = step;
    log::info("{}: compression begins after step {}", name, step);
    return {};
  }
  double ratio = 0;
  BITRAIL_TRY(Look(*this, state, step, &ratio));
  if (ratio < threshold) return {};
  frozen_at = step;
  log::info(
      "{}: the variance has settled (its norm now and {} steps ago: ratio {:.4f}, threshold {}): "
      "compression begins after step {}",
      name, distance, ratio, threshold, step);
  return {};
}

void Freeze::Loaded(int64_t step) {
  if (mode == BITRAIL_FREEZE_AUTO) return;  // frozen_at is of the list
  if (step < at) {
    frozen_at = -1;
  } else if (frozen_at < 0 || frozen_at > step) {
    frozen_at = step;
  }
}

void Freeze::List(StateList* list) {
  list->add("frozen_at", frozen_at);
  if (mode != BITRAIL_FREEZE_AUTO) return;
  list->add("variance_norms_recorded", recorded);
  for (size_t i = 0; i < norms.size(); i++)
    list->add("variance_norm." + std::to_string(i), norms[i]);
}

}  // namespace bitrail::optimizers
