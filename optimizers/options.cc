#include "optimizers/options.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

namespace bitrail::optimizers {
namespace {

// What the first header had.
constexpr size_t kLeastOptions = offsetof(bitrail_optimizer_options_t, compat);

// Overwrites the defaults in *to by what the caller's structure, maybe an older one, has.
template <typename T>
Status Take(const T* from, const char* name, T* to) {
  if (from == nullptr) return {};
  if (from->struct_size < sizeof(size_t) + sizeof(int64_t)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}.struct_size is {}, {} expected", name,
                   from->struct_size, sizeof(T));
  }
  std::memcpy(to, from, std::min(from->struct_size, sizeof(T)));
  to->struct_size = sizeof(T);
  return {};
}

bool Amount(double value) { return std::isfinite(value) && value >= 0; }

Status Check(const bitrail_zero_one_t& o) {
  if (o.var_update_scaler >= 1 && o.local_step_scaler >= 1 && o.local_step_clipper >= 1) return {};
  return failure(
      BITRAIL_ERR_INVALID_ARGUMENT,
      "0/1 Adam: var_update_scaler {}, local_step_scaler {}, local_step_clipper {}: each "
      "is at least 1",
      o.var_update_scaler, o.local_step_scaler, o.local_step_clipper);
}

Status Check(const bitrail_lamb_t& o) {
  if (Amount(o.min_coeff) && o.min_coeff <= o.max_coeff && std::isfinite(o.max_coeff) &&
      o.coeff_beta >= 0 && o.coeff_beta < 1 && Amount(o.factor_min) &&
      o.factor_min <= o.factor_max && std::isfinite(o.factor_max) && o.factor_threshold >= 0 &&
      o.factor_threshold < 1) {
    return {};
  }
  return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                 "LAMB: max_coeff {}, min_coeff {}, coeff_beta {}, factor_max {}, factor_min {}, "
                 "factor_threshold {}: 0 <= min <= max, coeff_beta and factor_threshold in [0, 1)",
                 o.max_coeff, o.min_coeff, o.coeff_beta, o.factor_max, o.factor_min,
                 o.factor_threshold);
}

Status Check(const bitrail_precision_t& o) {
  if (o.param_type != BITRAIL_FLOAT32 && o.param_type != BITRAIL_FLOAT16 &&
      o.param_type != BITRAIL_BFLOAT16) {
    return failure(BITRAIL_ERR_UNSUPPORTED,
                   "param_type {}: parameters are float32, float16 or bfloat16",
                   static_cast<int>(o.param_type));
  }
  if (o.loss_scale < BITRAIL_LOSS_SCALE_NONE || o.loss_scale > BITRAIL_LOSS_SCALE_DYNAMIC) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no loss scale {}",
                   static_cast<int>(o.loss_scale));
  }
  if (!(o.static_scale > 0) || !std::isfinite(o.static_scale) || o.initial_scale_power < 0 ||
      o.initial_scale_power > 126 || o.scale_window < 1 || o.hysteresis < 1 || !(o.min_scale > 0) ||
      !std::isfinite(o.min_scale) || o.most_skips < 1 || !Amount(o.clip)) {
    return failure(
        BITRAIL_ERR_INVALID_ARGUMENT,
        "precision: static_scale {}, initial_scale_power {}, scale_window {}, hysteresis "
        "{}, min_scale {}, most_skips {}, clip {}: scales are positive, the power in "
        "0..126, window, hysteresis and most_skips at least 1, clip not negative",
        o.static_scale, o.initial_scale_power, o.scale_window, o.hysteresis, o.min_scale,
        o.most_skips, o.clip);
  }
  return {};
}

Status CheckFreeze(bitrail_optimizer_options_t* o) {
  if (o->freeze_threshold == 0) o->freeze_threshold = 0.96;
  switch (o->freeze) {
    case BITRAIL_FREEZE_STEP:
      if (o->freeze_step >= 0) return {};
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "freeze_step is {}", o->freeze_step);
    case BITRAIL_FREEZE_SHARE:
      if (o->freeze_share >= 0 && o->freeze_share <= 1 && o->total_steps >= 1) return {};
      return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                     "freeze_share {} of total_steps {}: a share in [0, 1] of at least one step",
                     o->freeze_share, o->total_steps);
    case BITRAIL_FREEZE_AUTO:
      if (o->freeze_threshold > 0 && o->freeze_threshold < 1) return {};
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "freeze_threshold is {}, not in (0, 1)",
                     o->freeze_threshold);
  }
  return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no freeze mode {}",
                 static_cast<int>(o->freeze));
}

}  // namespace

Status ReadOptions(const bitrail_optimizer_options_t* from, Options* to) {
  if (from == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer options are NULL");
  if (from->struct_size < kLeastOptions) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_optimizer_options_t.struct_size is {}, at least {} expected",
                   from->struct_size, kLeastOptions);
  }
  *to = Options();
  std::memcpy(&to->c, from, std::min(from->struct_size, sizeof to->c));
  to->c.struct_size = sizeof to->c;
  if ((to->c.compat & ~static_cast<uint32_t>(BITRAIL_COMPAT_DEEPSPEED)) != 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "compat {:#x}: this library knows the bits {:#x}",
                   to->c.compat, static_cast<uint32_t>(BITRAIL_COMPAT_DEEPSPEED));
  }
  if (to->c.layout < BITRAIL_LAYOUT_DEFAULT || to->c.layout > BITRAIL_LAYOUT_FUSED) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no layout {}",
                   static_cast<int>(to->c.layout));
  }
  BITRAIL_TRY(CheckFreeze(&to->c));
  bitrail_zero_one_defaults(&to->zero_one);
  bitrail_lamb_defaults(&to->lamb);
  bitrail_precision_defaults(&to->precision);
  BITRAIL_TRY(Take(to->c.zero_one, "bitrail_zero_one_t", &to->zero_one));
  BITRAIL_TRY(Take(to->c.lamb, "bitrail_lamb_t", &to->lamb));
  BITRAIL_TRY(Take(to->c.precision, "bitrail_precision_t", &to->precision));
  to->c.zero_one = nullptr;  // borrowed for the call only
  to->c.lamb = nullptr;
  to->c.precision = nullptr;
  BITRAIL_TRY(Check(to->zero_one));
  BITRAIL_TRY(Check(to->lamb));
  return Check(to->precision);
}

}  // namespace bitrail::optimizers

extern "C" {

void bitrail_zero_one_defaults(bitrail_zero_one_t* options) {
  if (options != nullptr) *options = {sizeof *options, 16, 32678, 16};
}

void bitrail_lamb_defaults(bitrail_lamb_t* options) {
  if (options != nullptr) *options = {sizeof *options, 10.0, 0.01, 0.9, 4.0, 0.5, 0.1};
}

void bitrail_precision_defaults(bitrail_precision_t* options) {
  if (options == nullptr) return;
  *options = {};
  options->struct_size = sizeof *options;
  options->param_type = BITRAIL_FLOAT32;
  options->loss_scale = BITRAIL_LOSS_SCALE_NONE;
  options->static_scale = 1;
  options->initial_scale_power = 16;
  options->scale_window = 1000;
  options->hysteresis = 2;
  options->min_scale = 1;
  options->most_skips = 50;
}

}  // extern "C"
