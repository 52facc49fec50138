// The optimizer part of the C API.
#include "optimizers/optimizer.h"

#include <cmath>

#include "optimizers/adam.h"
#include "runtime/api/result.h"

namespace bitrail::optimizers {
namespace {

Status Create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
              const bitrail_optimizer_options_t* options, bool onebit) {
  if (optimizer == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer is NULL");
  *optimizer = nullptr;
  auto made = std::make_unique<bitrail_optimizer>();
  BITRAIL_TRY(MakeState(options, &made->state));
  if (onebit) {
    made->onebit = std::make_unique<OneBitAdam>();
    BITRAIL_TRY(MakeOneBitAdam(comm, *options, made->state, made->onebit.get()));
    made->step = options->init_call != 0 ? 1 : 0;
  }
  *optimizer = made.release();
  return {};
}

Status Step(bitrail_optimizer_t optimizer, const float* gradient) {
  if (optimizer == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer is NULL");
  if (gradient == nullptr && optimizer->state.elements() != 0) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer step: gradient is NULL");
  }
  if (optimizer->onebit == nullptr) {
    BITRAIL_TRY(CheckGradient(optimizer->state, gradient));
    AdamStep(optimizer->state, gradient);
    optimizer->step++;
    return {};
  }
  BITRAIL_TRY(OneBitAdamStep(*optimizer->onebit, optimizer->state, gradient));
  optimizer->step++;
  MaybeFreeze(*optimizer->onebit, optimizer->step);
  return {};
}

Status SetLr(bitrail_optimizer_t optimizer, size_t group, double lr) {
  if (optimizer == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer is NULL");
  if (group >= optimizer->state.groups.size()) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "there is no parameter group {} of {}", group,
                   optimizer->state.groups.size());
  }
  if (!(lr >= 0) || !std::isfinite(lr)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "parameter group {}: lr is {}", group, lr);
  }
  optimizer->state.groups[group].factors.lr = static_cast<float>(lr);
  return {};
}

bool Frozen(bitrail_optimizer_t optimizer) {
  return optimizer != nullptr && optimizer->onebit != nullptr && optimizer->onebit->frozen;
}

}  // namespace
}  // namespace bitrail::optimizers

using bitrail::Status;
using bitrail::api::guarded;

extern "C" {

bitrail_status_t bitrail_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                     const bitrail_optimizer_options_t* options) {
  return guarded([&] { return bitrail::optimizers::Create(optimizer, comm, options, false); });
}

bitrail_status_t bitrail_onebit_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                            const bitrail_optimizer_options_t* options) {
  return guarded([&] { return bitrail::optimizers::Create(optimizer, comm, options, true); });
}

bitrail_status_t bitrail_optimizer_destroy(bitrail_optimizer_t optimizer) {
  return guarded([&]() -> Status {
    delete optimizer;
    return {};
  });
}

bitrail_gradient_t bitrail_optimizer_gradient(bitrail_optimizer_t optimizer) {
  return bitrail::optimizers::Frozen(optimizer) ? BITRAIL_GRADIENT_LOCAL : BITRAIL_GRADIENT_MEAN;
}

bitrail_status_t bitrail_optimizer_step(bitrail_optimizer_t optimizer, const float* gradient) {
  return guarded([&] { return bitrail::optimizers::Step(optimizer, gradient); });
}

bitrail_status_t bitrail_optimizer_set_lr(bitrail_optimizer_t optimizer, size_t group, double lr) {
  return guarded([&] { return bitrail::optimizers::SetLr(optimizer, group, lr); });
}

int64_t bitrail_optimizer_step_count(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? 0 : optimizer->step;
}

int bitrail_optimizer_frozen(bitrail_optimizer_t optimizer) {
  return bitrail::optimizers::Frozen(optimizer) ? 1 : 0;
}

size_t bitrail_optimizer_state_bytes(bitrail_optimizer_t optimizer) {
  if (optimizer == nullptr) return 0;
  return optimizer->state.bytes() + (optimizer->onebit == nullptr ? 0 : optimizer->onebit->bytes());
}

}  // extern "C"
