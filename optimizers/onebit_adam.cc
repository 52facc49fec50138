#include "optimizers/onebit_adam.h"

#include <algorithm>

#include "optimizers/adam.h"
#include "runtime/api/error_state.h"

namespace bitrail::optimizers {
namespace {

// What producer and consumer see of a step.
struct Exchange {
  State* state;
  const float* gradient;  // null: the init call's zeros
  bool guard;
};

void Produce(void* user, size_t segment, size_t begin, size_t count, float* out) {
  const Exchange& exchange = *static_cast<const Exchange*>(user);
  const State& state = *exchange.state;
  const Segment& of = state.segments[segment];
  const size_t at = of.offset + begin;
  if (exchange.gradient == nullptr) {
    std::fill_n(out, count, 0.0f);
    return;
  }
  kernels::Momentum(state.groups[of.group].beta1, count, exchange.gradient + at,
                    state.m.data() + at, out);
}

void Consume(void* user, size_t segment, size_t begin, size_t count, const float* values) {
  const Exchange& exchange = *static_cast<const Exchange*>(user);
  if (exchange.gradient == nullptr) return;
  State& state = *exchange.state;
  const Segment& of = state.segments[segment];
  const size_t at = of.offset + begin;
  const float* mask = of.mask.empty() ? nullptr : of.mask.data() + begin;
  kernels::OneBitAdamStep(state.groups[of.group].factors, count, values, mask, exchange.guard,
                          state.m.data() + at, state.v.data() + at, state.params + at);
}

// What the C API returned, with its text.
Status Checked(bitrail_status_t code) {
  if (code == BITRAIL_OK) return {};
  return {code, bitrail_last_error()};
}

Status Run(OneBitAdam& onebit, Exchange& exchange) {
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.type = BITRAIL_FLOAT32;
  call.produce = Produce;
  call.consume = Consume;
  call.user = &exchange;
  return Checked(bitrail_onebit_allreduce(onebit.errors.get(), &call, nullptr));
}

// One rank: the local momentum is the result.
void Alone(Exchange& exchange) {
  State& state = *exchange.state;
  for (size_t index = 0; index < state.segments.size(); index++) {
    const Segment& segment = state.segments[index];
    float* m = state.m.data() + segment.offset;
    Produce(&exchange, index, 0, segment.count, m);
    Consume(&exchange, index, 0, segment.count, m);
  }
}

Status MakeErrors(const bitrail_optimizer_options_t& options, const State& state,
                  OneBitAdam* onebit) {
  std::vector<size_t> counts;
  for (const Segment& segment : state.segments) counts.push_back(segment.count);
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = counts.size();
  layout.counts = counts.data();
  layout.scale = options.scale;
  layout.norm = options.norm;
  layout.block = options.block;
  bitrail_error_state_t errors = nullptr;
  BITRAIL_TRY(Checked(bitrail_error_state_create(&errors, onebit->comm, &layout)));
  onebit->errors.reset(errors);
  return {};
}

}  // namespace

size_t OneBitAdam::bytes() const {
  return errors == nullptr ? 0 : (errors->worker.size() + errors->server.size()) * sizeof(float);
}

Status MakeOneBitAdam(bitrail_comm_t comm, const bitrail_optimizer_options_t& options, State& state,
                      OneBitAdam* onebit) {
  if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "1-bit Adam: comm is NULL");
  if (options.freeze_step < 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "1-bit Adam: freeze_step is {}",
                   options.freeze_step);
  }
  onebit->comm = comm;
  onebit->freeze_step = options.freeze_step;
  onebit->guard = !UpdateDead(options);
  if (bitrail_comm_world_size(comm) == 1) return {};
  BITRAIL_TRY(MakeErrors(options, state, onebit));
  if (options.init_call == 0) return {};
  Exchange zeros{&state, nullptr, true};
  return Run(*onebit, zeros);
}

Status OneBitAdamStep(OneBitAdam& onebit, State& state, const float* gradient) {
  if (onebit.broken) {
    return failure(BITRAIL_ERR_BROKEN,
                   "rank {}: an earlier exchange of this optimizer failed half-way; load a "
                   "checkpoint into a new one",
                   bitrail_comm_rank(onebit.comm));
  }
  if (!onebit.frozen) {
    BITRAIL_TRY(CheckGradient(state, gradient));
    AdamStep(state, gradient);
    return {};
  }
  Exchange exchange{&state, gradient, onebit.guard};
  if (onebit.errors == nullptr) {
    BITRAIL_TRY(CheckGradient(state, gradient));
    Alone(exchange);
    return {};
  }
  Status status = Run(onebit, exchange);
  onebit.broken = onebit.errors->broken;
  return status;
}

void MaybeFreeze(OneBitAdam& onebit, int64_t step) {
  if (step >= onebit.freeze_step) onebit.frozen = true;
}

}  // namespace bitrail::optimizers
