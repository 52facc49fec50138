#include "optimizers/precision.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/host/convert.h"
#include "optimizers/exchange.h"

namespace bitrail::optimizers {

Precision MakePrecision(bitrail_comm_t comm, const Options& options) {
  Precision made;
  made.comm = comm;
  made.type = options.precision.param_type;
  made.params = options.c.params;
  made.clip = options.precision.clip;
  made.local_clip = options.compat(BITRAIL_COMPAT_LOCAL_CLIP);
  made.loss_scale = MakeLossScale(options.precision);
  return made;
}

Status Prepare(const Precision& precision, const State& state, bool local, Gradient* gradient,
               bool* overflow) {
  *overflow = false;
  const double scale = precision.loss_scale.scale;
  if (!precision.loss_scale.active() && precision.clip == 0) return {};
  const double squares = SquaredSum(state, *gradient) / (scale * scale);
  const bool bad = !(squares <= std::numeric_limits<float>::max());
  const double own = bad ? 0 : std::sqrt(squares);
  double both[2] = {bad ? 1.0 : 0.0, own};
  int world = 1;
  if (precision.comm != nullptr) world = bitrail_comm_world_size(precision.comm);
  if (world > 1) {
    BITRAIL_TRY(Checked(bitrail_allreduce_deterministic(precision.comm, both, both, 2,
                                                        BITRAIL_FLOAT64, BITRAIL_SUM, nullptr)));
  }
  if (both[0] != 0) {
    *overflow = true;
    if (precision.loss_scale.active()) return {};
    return failure(BITRAIL_ERR_NOT_FINITE,
                   "the gradients of {} of {} ranks are not finite; this step is refused on all",
                   both[0], world);
  }
  const double norm = precision.local_clip && local ? own : both[1] / world;
  double factor = 1 / scale;
  if (precision.clip > 0) factor *= std::min(1.0, precision.clip / (norm + 1e-6));
  gradient->factor = static_cast<float>(factor);
  gradient->agreed = true;
  return {};
}

void StoreParameters(const Precision& precision, const State& state) {
  if (precision.type == BITRAIL_FLOAT32) return;
  const auto narrow =
      precision.type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
  narrow(state.params, state.elements(), static_cast<uint16_t*>(precision.params));
}

}  // namespace bitrail::optimizers
