// The optimizer part of the C API.
#include <algorithm>
#include <cmath>

#include "optimizers/adam.h"
#include "optimizers/checkpoint_state.h"
#include "optimizers/lamb.h"
#include "optimizers/onebit_adam.h"
#include "optimizers/onebit_lamb.h"
#include "optimizers/optimizer.h"
#include "optimizers/zero_one_adam.h"
#include "runtime/api/result.h"

namespace bitrail::optimizers {
namespace {

using MakeMethod = Status (*)(bitrail_comm_t, const Options&, const State&,
                              std::unique_ptr<Method>*);

// The baselines exchange nothing themselves.
Status MakeAdamMethod(bitrail_comm_t, const Options&, const State&,
                      std::unique_ptr<Method>* method) {
  *method = MakeAdam();
  return {};
}
Status MakeLambMethod(bitrail_comm_t, const Options& options, const State& state,
                      std::unique_ptr<Method>* method) {
  *method = MakeLamb(options, state);
  return {};
}

struct Kind {
  const char* name;
  bool onebit, takes_non_freeze;
  MakeMethod make;
};

constexpr Kind kAdam = {"Adam", false, true, MakeAdamMethod};
constexpr Kind kLamb = {"LAMB", false, true, MakeLambMethod};
constexpr Kind kOneBitAdam = {"1-bit Adam", true, true, MakeOneBitAdam};
constexpr Kind kZeroOneAdam = {"0/1 Adam", true, false, MakeZeroOneAdam};
constexpr Kind kOneBitLamb = {"1-bit LAMB", true, false, MakeOneBitLamb};

Status CheckKind(const Kind& kind, bitrail_comm_t comm, const State& state) {
  if (kind.onebit && comm == nullptr)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: comm is NULL", kind.name);
  for (size_t i = 0; i < state.groups.size(); i++) {
    if (!state.groups[i].non_freeze || kind.takes_non_freeze) continue;
    return failure(BITRAIL_ERR_UNSUPPORTED, "{}: parameter group {}: non_freeze is 1-bit Adam's",
                   kind.name, i);
  }
  return {};
}

Status Create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
              const bitrail_optimizer_options_t* options, const Kind& kind) {
  if (optimizer == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer is NULL");
  *optimizer = nullptr;
  auto made = std::make_unique<bitrail_optimizer>();
  BITRAIL_TRY(ReadOptions(options, &made->options));
  BITRAIL_TRY(MakeState(made->options, &made->state));
  made->options.c.segment = nullptr;  // borrowed for the call only
  made->options.c.group = nullptr;
  BITRAIL_TRY(CheckKind(kind, comm, made->state));
  made->comm = comm;
  made->precision = MakePrecision(comm, made->options);
  made->replicas = MakeReplicas(comm);
  BITRAIL_TRY(kind.make(comm, made->options, made->state, &made->method));
  if (made->options.c.init_call != 0 && made->method->has_init_call()) {
    BITRAIL_TRY(made->method->init_call());
    made->step = 1;
  }
  *optimizer = made.release();
  return {};
}

Status CheckStep(bitrail_optimizer_t optimizer, const void* gradient, bitrail_type_t type) {
  if (optimizer == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer is NULL");
  if (gradient == nullptr && optimizer->state.elements() != 0)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer step: gradient is NULL");
  if (type != BITRAIL_FLOAT32 && type != BITRAIL_FLOAT16 && type != BITRAIL_BFLOAT16) {
    return failure(BITRAIL_ERR_UNSUPPORTED,
                   "optimizer step: a gradient of type {}: float32, float16 or bfloat16 expected",
                   static_cast<int>(type));
  }
  return {};
}

// The step itself: done, skipped (*overflow), or failed.
Status Advance(bitrail_optimizer& o, Gradient* gradient, bool* overflow) {
  const bool local = o.method->gradient() == BITRAIL_GRADIENT_LOCAL;
  BITRAIL_TRY(Prepare(o.precision, o.state, local, gradient, overflow));
  if (*overflow) return {};
  Status status = o.method->step(o.state, *gradient, o.step + 1);
  if (status.code() == BITRAIL_ERR_NOT_FINITE && o.precision.loss_scale.active()) {
    *overflow = true;  // the exchange refused, on all ranks
    return {};
  }
  return status;
}

Status Step(bitrail_optimizer_t optimizer, const void* data, bitrail_type_t type) {
  BITRAIL_TRY(CheckStep(optimizer, data, type));
  bitrail_optimizer& o = *optimizer;
  if (o.step == 0 && o.method->has_init_call() &&
      o.options.compat(BITRAIL_COMPAT_FIRST_STEP_LOST)) {
    BITRAIL_TRY(o.method->init_call());
    o.step = 1;
    return {};
  }
  Gradient gradient;
  gradient.data = data;
  gradient.type = type;
  bool overflow = false;
  BITRAIL_TRY(Advance(o, &gradient, &overflow));
  BITRAIL_TRY(o.precision.loss_scale.Update(overflow));
  if (overflow) return {};
  o.step++;
  StoreParameters(o.precision, o.state);
  if (!o.method->replicas_equal()) return {};
  return CheckReplicas(o.replicas, o.state.params, o.state.elements(), o.step);
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
  optimizer->state.groups[group].lr = lr;
  optimizer->state.groups[group].factors.lr = static_cast<float>(lr);
  return {};
}

Status Coefficients(bitrail_optimizer_t optimizer, double* out, size_t count) {
  if (optimizer == nullptr || out == nullptr)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "LAMB coefficients: optimizer or room is NULL");
  const std::vector<double>* all = optimizer->method->coefficients();
  if (all == nullptr) {
    return failure(BITRAIL_ERR_UNSUPPORTED, "{} has no LAMB coefficients",
                   optimizer->method->name());
  }
  if (count != all->size()) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "LAMB coefficients: room for {}, there are {} segments", count, all->size());
  }
  std::copy(all->begin(), all->end(), out);
  return {};
}

Status ReadOptions(const bitrail_checkpoint_options_t* options, Loaded* rule) {
  *rule = Loaded::reset;
  if (options == nullptr) return {};
  if (options->struct_size < sizeof *options) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_checkpoint_options_t.struct_size is {}, at least {} expected",
                   options->struct_size, sizeof *options);
  }
  if (options->errors != BITRAIL_ERRORS_RESET && options->errors != BITRAIL_ERRORS_EXACT) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint options: there is no errors {}",
                   static_cast<int>(options->errors));
  }
  if (options->errors == BITRAIL_ERRORS_EXACT) *rule = Loaded::exact;
  return {};
}

Status Keep(bitrail_optimizer_t optimizer, const char* directory,
            const bitrail_checkpoint_options_t* options, bool load) {
  if (optimizer == nullptr || directory == nullptr)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "checkpoint: optimizer or directory is NULL");
  Loaded rule;
  BITRAIL_TRY(ReadOptions(options, &rule));
  return load ? LoadOptimizer(*optimizer, directory, rule) : SaveOptimizer(*optimizer, directory);
}

}  // namespace
}  // namespace bitrail::optimizers

using bitrail::Status;
using bitrail::api::guarded;

namespace optimizers = bitrail::optimizers;

extern "C" {

bitrail_status_t bitrail_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                     const bitrail_optimizer_options_t* options) {
  return guarded([&] { return optimizers::Create(optimizer, comm, options, optimizers::kAdam); });
}

bitrail_status_t bitrail_lamb_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                     const bitrail_optimizer_options_t* options) {
  return guarded([&] { return optimizers::Create(optimizer, comm, options, optimizers::kLamb); });
}

bitrail_status_t bitrail_onebit_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                            const bitrail_optimizer_options_t* options) {
  return guarded(
      [&] { return optimizers::Create(optimizer, comm, options, optimizers::kOneBitAdam); });
}

bitrail_status_t bitrail_zero_one_adam_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                              const bitrail_optimizer_options_t* options) {
  return guarded(
      [&] { return optimizers::Create(optimizer, comm, options, optimizers::kZeroOneAdam); });
}

bitrail_status_t bitrail_onebit_lamb_create(bitrail_optimizer_t* optimizer, bitrail_comm_t comm,
                                            const bitrail_optimizer_options_t* options) {
  return guarded(
      [&] { return optimizers::Create(optimizer, comm, options, optimizers::kOneBitLamb); });
}

bitrail_status_t bitrail_optimizer_destroy(bitrail_optimizer_t optimizer) {
  return guarded([&]() -> Status {
    delete optimizer;
    return {};
  });
}

bitrail_gradient_t bitrail_optimizer_gradient(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? BITRAIL_GRADIENT_MEAN : optimizer->method->gradient();
}

bitrail_status_t bitrail_optimizer_step(bitrail_optimizer_t optimizer, const float* gradient) {
  return guarded([&] { return optimizers::Step(optimizer, gradient, BITRAIL_FLOAT32); });
}

bitrail_status_t bitrail_optimizer_step_typed(bitrail_optimizer_t optimizer, const void* gradient,
                                              bitrail_type_t type) {
  return guarded([&] { return optimizers::Step(optimizer, gradient, type); });
}

bitrail_status_t bitrail_optimizer_set_lr(bitrail_optimizer_t optimizer, size_t group, double lr) {
  return guarded([&] { return optimizers::SetLr(optimizer, group, lr); });
}

int64_t bitrail_optimizer_step_count(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? 0 : optimizer->step;
}

int bitrail_optimizer_frozen(bitrail_optimizer_t optimizer) {
  return optimizer != nullptr && optimizer->method->frozen() ? 1 : 0;
}

int64_t bitrail_optimizer_frozen_at(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? -1 : optimizer->method->frozen_at();
}

double bitrail_optimizer_loss_scale(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? 1 : optimizer->precision.loss_scale.scale;
}

int64_t bitrail_optimizer_skipped_steps(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? 0 : optimizer->precision.loss_scale.skipped;
}

bitrail_status_t bitrail_optimizer_lamb_coefficients(bitrail_optimizer_t optimizer,
                                                     double* coefficients, size_t count) {
  return guarded([&] { return optimizers::Coefficients(optimizer, coefficients, count); });
}

bitrail_status_t bitrail_optimizer_save(bitrail_optimizer_t optimizer, const char* directory,
                                        const bitrail_checkpoint_options_t* options) {
  return guarded([&] { return optimizers::Keep(optimizer, directory, options, false); });
}

bitrail_status_t bitrail_optimizer_load(bitrail_optimizer_t optimizer, const char* directory,
                                        const bitrail_checkpoint_options_t* options) {
  return guarded([&] { return optimizers::Keep(optimizer, directory, options, true); });
}

size_t bitrail_optimizer_state_bytes(bitrail_optimizer_t optimizer) {
  return optimizer == nullptr ? 0 : optimizer->state.bytes() + optimizer->method->bytes();
}

}  // extern "C"
