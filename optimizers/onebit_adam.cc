#include "optimizers/onebit_adam.h"

#include <algorithm>
#include <limits>

#include "kernels/host/scale.h"
#include "kernels/host/stream.h"
#include "optimizers/adam.h"

namespace bitrail::optimizers {
namespace {

struct MomentumPass final : Pass {
  State& state;
  const Gradient& gradient;
  bool guard;
  alignas(64) float tile[kTile];

  MomentumPass(State& of, const Gradient& from, bool guarded)
      : state(of), gradient(from), guard(guarded) {}

  void produce(size_t index, size_t begin, size_t count, float* out) override {
    const Segment& segment = state.segments[index];
    const size_t at = segment.offset + begin;
    kernels::Momentum(state.group(segment).beta1, count, gradient.at(at, count, tile),
                      state.m.data() + at, out);
  }
  void consume(size_t index, size_t begin, size_t count, const float* values) override {
    const Segment& segment = state.segments[index];
    const size_t at = segment.offset + begin;
    kernels::OneBitAdamStep(state.group(segment).factors, count, values, segment.mask_at(begin),
                            guard, state.m.data() + at, state.v.data() + at, state.params + at,
                            state.m.size() >= kernels::kStreamFrom);
  }
};

// Calls visit(segment, first element in `full`) for the groups that stay in full precision.
template <typename Visit>
void ForNonFreeze(const State& state, Visit visit) {
  size_t at = 0;
  for (const Segment& segment : state.segments) {
    if (!state.group(segment).non_freeze) continue;
    visit(segment, at);
    at += segment.count;
  }
}

size_t NonFreezeElements(const State& state) {
  size_t elements = 0;
  ForNonFreeze(state, [&](const Segment& segment, size_t) { elements += segment.count; });
  return elements;
}

// The mean over ranks, in rank order so that it does not depend on an algorithm.
Status AverageNonFreeze(OneBitAdam& onebit, const State& state, const Gradient& gradient) {
  onebit.full.resize(NonFreezeElements(state));
  if (onebit.full.empty()) return {};
  ForNonFreeze(state, [&](const Segment& segment, size_t first) {
    ForGradient(gradient, segment, [&](size_t begin, size_t n, const float* g) {
      std::copy_n(g, n, onebit.full.data() + first + begin);
    });
  });
  if (onebit.exchange.alone()) return {};
  return Checked(bitrail_allreduce_deterministic(onebit.exchange.comm, onebit.full.data(),
                                                 onebit.full.data(), onebit.full.size(),
                                                 BITRAIL_FLOAT32, BITRAIL_AVG, nullptr));
}

// NaN on one rank is in the mean on all.
Status CheckNonFreeze(const OneBitAdam& onebit) {
  const double squares = kernels::SquaredSum(onebit.full.data(), nullptr, onebit.full.size());
  if (squares <= std::numeric_limits<float>::max()) return {};
  return Status(BITRAIL_ERR_NOT_FINITE,
                "the mean gradient of the groups with non_freeze is not finite; this step is "
                "refused on all ranks");
}

void StepNonFreeze(const OneBitAdam& onebit, State& state) {
  ForNonFreeze(state, [&](const Segment& segment, size_t first) {
    const Group& group = state.group(segment);
    kernels::AdamStep(group.factors, group.beta1, group.beta2, segment.count,
                      onebit.full.data() + first, state.m.data() + segment.offset,
                      state.v.data() + segment.offset, state.params + segment.offset);
  });
}

Status CompressedStep(OneBitAdam& onebit, State& state, const Gradient& gradient) {
  if (onebit.exchange.alone()) BITRAIL_TRY(CheckGradient(state, gradient));
  BITRAIL_TRY(AverageNonFreeze(onebit, state, gradient));
  BITRAIL_TRY(CheckNonFreeze(onebit));
  MomentumPass pass(state, gradient, onebit.guard);
  BITRAIL_TRY(Run(onebit.exchange, state, pass));
  StepNonFreeze(onebit, state);
  return {};
}

}  // namespace

Status OneBitAdam::step(State& state, const Gradient& gradient, int64_t step) {
  if (frozen()) return CompressedStep(*this, state, gradient);
  BITRAIL_TRY(CheckGradient(state, gradient));
  AdamStep(state, gradient, guard);
  return freeze.Update(state, step);
}

void ListErrors(Exchange& exchange, StateList* list) {
  if (exchange.errors == nullptr) return;
  list->add("worker_error", exchange.errors->worker, /*per_rank=*/true, /*error=*/true);
  list->add("server_error", exchange.errors->server, /*per_rank=*/true, /*error=*/true);
  if (!exchange.tail.empty()) list->add("tail", exchange.tail, /*per_rank=*/false, /*error=*/true);
}

void OneBitAdam::list(State&, bool, StateList* list) {
  freeze.List(list);
  ListErrors(exchange, list);
}

Status OneBitAdam::loaded(State&, int64_t step, Loaded rule) {
  freeze.Loaded(step);
  exchange.broken = false;
  if (rule == Loaded::exact && frozen()) return {};
  return exchange.reset_errors();
}

Status MakeOneBitAdam(bitrail_comm_t comm, const Options& options, const State& state,
                      std::unique_ptr<Method>* method) {
  auto made = std::make_unique<OneBitAdam>();
  made->guard = !options.compat(BITRAIL_COMPAT_UPDATE_DEAD);
  const bitrail_layout_t layout =
      options.c.layout == BITRAIL_LAYOUT_DEFAULT ? BITRAIL_LAYOUT_PER_TENSOR : options.c.layout;
  BITRAIL_TRY(MakeExchange(comm, options, state, layout, false, &made->exchange));
  MakeFreeze(comm, options, state, made->name(), false, &made->freeze);
  *method = std::move(made);
  return {};
}

}  // namespace bitrail::optimizers
