#include "optimizers/zero_one_adam.h"

#include <algorithm>

#include "kernels/host/zero_one.h"
#include "optimizers/adam.h"
#include "optimizers/onebit_adam.h"
#include "optimizers/zero_one_passes.h"

namespace bitrail::optimizers {
namespace {

Status BeforeFreeze(ZeroOneAdam& z, State& state, const Gradient& gradient, bool variance) {
  if (variance) {
    BITRAIL_TRY(CheckGradient(state, gradient));
    AdamStep(state, gradient, z.guard);
    return {};
  }
  if (z.exchange.alone()) BITRAIL_TRY(CheckGradient(state, gradient));
  GradientPass pass(z, state, gradient);
  return Run(z.exchange, state, pass);
}

void LocalStep(const ZeroOneAdam& z, State& state, const Gradient& gradient, float* accumulator) {
  for (const Segment& segment : state.segments) {
    const Group& group = state.group(segment);
    ForGradient(gradient, segment, [&](size_t begin, size_t n, const float* g) {
      const size_t at = segment.offset + begin;
      if (accumulator != nullptr) {
        AccumulatedStep(group, z.guard, n, g, state.m.data() + at, state.v.data() + at,
                        state.params + at, accumulator + at);
      } else {
        kernels::MomentumStep(group.factors, group.beta1, n, g, nullptr, z.guard,
                              state.m.data() + at, state.v.data() + at, state.params + at);
      }
    });
  }
}

// Whether nothing has moved since the last sync.
bool Idle(const ZeroOneAdam& z, const State& state) {
  for (size_t i = 0; i < z.lr_sum.size(); i++)
    if (z.lr_sum[i] + state.groups[i].lr != 0) return false;
  return true;
}

Status AfterFreeze(ZeroOneAdam& z, State& state, const Gradient& gradient, bool sync) {
  if (sync && !z.divides_by_zero && Idle(z, state)) sync = false;
  if (!sync || z.exchange.alone()) {
    const Status own = gradient.agreed ? Status() : CheckGradient(state, gradient);
    BITRAIL_TRY(gradient.agreed ? Status() : Agree(z.exchange.comm, own));
  }
  if (!sync) {
    LocalStep(z, state, gradient, z.accumulates ? z.base.data() : nullptr);
    for (size_t i = 0; i < z.lr_sum.size(); i++) {
      z.lr_sum[i] += state.groups[i].lr;
      if (state.groups[i].lr != 0) z.synced = 0;
    }
    return {};
  }
  if (z.accumulates) {
    AccumulatedSyncPass pass(z, state, gradient);
    BITRAIL_TRY(Run(z.exchange, state, pass));
  } else {
    SyncPass pass(z, state, gradient);
    BITRAIL_TRY(Run(z.exchange, state, pass));
  }
  std::fill(z.lr_sum.begin(), z.lr_sum.end(), 0.0);
  z.synced = 1;
  return {};
}

void CountVariance(ZeroOneAdam& z) {
  if (++z.var_counter < z.rules.var_update_scaler) return;
  z.var_counter = 0;
  if (z.var_interval <= INT64_MAX / 4) z.var_interval *= 2;
}

void CountLocal(ZeroOneAdam& z) {
  if (++z.local_counter < z.rules.local_step_scaler) return;
  z.local_counter = 0;
  z.local_interval = std::min(z.rules.local_step_clipper, z.local_interval * 2);
}

// Room for `base`, with what it is before any local step.
void MakeBase(ZeroOneAdam& z, const State& state) {
  if (z.accumulates) {
    z.base.assign(state.elements(), 0.0f);
  } else {
    z.base.assign(state.params, state.params + state.elements());
  }
}

void Restart(ZeroOneAdam& z, const State& state) {
  z.var_interval = z.local_interval = 1;
  z.var_counter = z.local_counter = 0;
  std::fill(z.lr_sum.begin(), z.lr_sum.end(), 0.0);
  if (!z.base.empty()) MakeBase(z, state);
}

Status Freezing(ZeroOneAdam& z, const State& state) {
  z.next_mean = 0;
  MakeBase(z, state);
  return z.exchange.reset_errors();
}

}  // namespace

Status ZeroOneAdam::step(State& state, const Gradient& gradient, int64_t step) {
  if (restart_due != 0) Restart(*this, state);
  restart_due = 0;
  if (frozen()) {
    BITRAIL_TRY(AfterFreeze(*this, state, gradient, step % local_interval == 0));
    CountLocal(*this);
    return {};
  }
  const bool variance = step % var_interval == 0;
  BITRAIL_TRY(BeforeFreeze(*this, state, gradient, variance));
  if (variance) CountVariance(*this);
  next_mean = (step + 1) % var_interval == 0 ? 1 : 0;
  BITRAIL_TRY(freeze.Update(state, step));
  return frozen() ? Freezing(*this, state) : Status();
}

void ZeroOneAdam::list(State& state, bool is_frozen, StateList* list) {
  freeze.List(list);
  list->add("var_interval", var_interval);
  list->add("var_counter", var_counter);
  list->add("local_step_interval", local_interval);
  list->add("local_step_counter", local_counter);
  list->add("next_gradient_mean", next_mean);
  list->add("synced", synced);
  for (size_t i = 0; i < lr_sum.size(); i++) list->add("lrs." + std::to_string(i), lr_sum[i]);
  if (is_frozen && base.empty()) MakeBase(*this, state);
  if (is_frozen) list->add(accumulates ? "momentum_accumulator" : "base", base, accumulates);
  ListErrors(exchange, list);
}

Status ZeroOneAdam::loaded(State& state, int64_t step, Loaded rule) {
  exchange.broken = false;
  if (restarts) {
    // The flag that says frozen is not loaded, the gradient's kind is of the saved interval, and
    // all else starts over in the next step.
    freeze.frozen_at = -1;
    next_mean = step < freeze.at - 1 && (step + 1) % var_interval == 0 ? 1 : 0;
    restart_due = 1;
    return exchange.reset_errors();
  }
  const bool was_frozen = frozen();
  freeze.Loaded(step);
  if (!frozen()) {  // also thawed: the intervals go on, local steps begin anew at the next freeze
    next_mean = (step + 1) % var_interval == 0 ? 1 : 0;
    if (was_frozen && synced == 0 && !accumulates)
      std::copy(base.begin(), base.end(), state.params);
    base.clear();
    base.shrink_to_fit();
    local_interval = 1;
    local_counter = 0;
    synced = 1;
    std::fill(lr_sum.begin(), lr_sum.end(), 0.0);
  } else if (!was_frozen) {
    return Freezing(*this, state);
  }
  if (rule == Loaded::exact && was_frozen == frozen()) return {};
  return exchange.reset_errors();
}

Status MakeZeroOneAdam(bitrail_comm_t comm, const Options& options, const State& state,
                       std::unique_ptr<Method>* method) {
  auto made = std::make_unique<ZeroOneAdam>();
  made->rules = options.zero_one;
  made->guard = !options.compat(BITRAIL_COMPAT_UPDATE_DEAD);
  made->accumulates = options.compat(BITRAIL_COMPAT_ACCUMULATOR);
  made->divides_by_zero = options.compat(BITRAIL_COMPAT_ZERO_LR);
  made->stands_still = options.compat(BITRAIL_COMPAT_ALONE_STANDS_STILL);
  made->restarts = options.compat(BITRAIL_COMPAT_ZERO_ONE_LOAD);
  made->lr_sum.assign(state.groups.size(), 0.0);
  const bitrail_layout_t layout =
      options.c.layout == BITRAIL_LAYOUT_DEFAULT ? BITRAIL_LAYOUT_PER_TENSOR : options.c.layout;
  BITRAIL_TRY(MakeExchange(comm, options, state, layout, false, &made->exchange));
  MakeFreeze(comm, options, state, made->name(), true, &made->freeze);
  *method = std::move(made);
  return {};
}

}  // namespace bitrail::optimizers
