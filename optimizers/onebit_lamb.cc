#include "optimizers/onebit_lamb.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/lamb.h"
#include "optimizers/lamb.h"
#include "optimizers/onebit_adam.h"

namespace bitrail::optimizers {
namespace {

struct FusedPass final : Pass {
  OneBitLamb& lamb;
  State& state;
  const Gradient& gradient;
  std::vector<float> ratio;  // (segments): the largest
  alignas(64) float tile[kTile];

  FusedPass(OneBitLamb& of, State& on, const Gradient& from)
      : lamb(of), state(on), gradient(from), ratio(on.segments.size(), 0.0f) {}

  void produce(size_t index, size_t begin, size_t count, float* out) override {
    const Segment& segment = state.segments[index];
    const size_t at = segment.offset + begin;
    kernels::Momentum(state.group(segment).beta1, count, gradient.at(at, count, tile),
                      state.m.data() + at, out);
    const auto scaling = static_cast<float>(lamb.tensors[index].scaling);
    for (size_t i = 0; i < count; i++) out[i] *= scaling;
  }
  void consume(size_t index, size_t begin, size_t count, const float* values) override {
    const Segment& segment = state.segments[index];
    const Group& group = state.group(segment);
    const size_t at = segment.offset + begin;
    const auto factor = static_cast<float>(1 / lamb.tensors[index].scaling);
    const float largest = kernels::LambFresh(
        group.factors, group.beta1, group.beta2, factor, count, values, segment.mask_at(begin),
        lamb.skip_dead, state.m.data() + at, state.v.data() + at, lamb.fresh.data() + at);
    ratio[index] = std::max(ratio[index], largest);
  }
};

// s_i of all segments, once.
Status FindScaling(OneBitLamb& lamb, const State& state) {
  std::vector<double> root(state.segments.size());
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < root.size(); i++) {
    const Segment& segment = state.segments[i];
    if (segment.count == 0) continue;
    const auto norm = static_cast<float>(
        std::sqrt(kernels::OrderedSquaredSum(state.m.data() + segment.offset, segment.count)));
    root[i] = static_cast<double>(norm) / std::sqrt(static_cast<double>(segment.count));
    if (root[i] == 0 && lamb.fails_at_zero) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                     "1-bit LAMB: the momentum of segment {} is all zero at the freeze "
                     "(BITRAIL_COMPAT_ZERO_MOMENTUM)",
                     i);
    }
    if (root[i] == 0) continue;
    sum += root[i];
    count++;
  }
  for (size_t i = 0; i < root.size(); i++)
    lamb.tensors[i].scaling = root[i] == 0 ? 1 : sum / static_cast<double>(count) / root[i];
  return {};
}

double NextFactor(const OneBitLamb& lamb, const State& state, const Segment& segment, float ratio,
                  double last) {
  const Group& group = state.group(segment);
  const bitrail_lamb_t& rules = lamb.rules;
  double f = ratio == 0 ? 1 : ratio;  // 0: nothing has a variance
  if (group.factors.weight_decay > 0) {
    const size_t at = segment.offset;
    const kernels::LambSquares squares =
        kernels::LambDirections(group.factors, segment.count, lamb.guard, state.m.data() + at,
                                state.v.data() + at, state.params + at);
    const auto plain = static_cast<float>(std::sqrt(squares.first));
    const auto decayed = static_cast<float>(std::sqrt(squares.second));
    const double rho = decayed == 0 ? 1 : std::min(1.0, static_cast<double>(plain / decayed));
    f = f * rho + (1 - rho);
  }
  f = std::clamp(f, rules.factor_min, rules.factor_max);
  f = std::min(f, last * (1 + rules.factor_threshold));
  return std::max(f, last * (1 - rules.factor_threshold));
}

Status CompressedStep(OneBitLamb& lamb, State& state, const Gradient& gradient) {
  if (lamb.exchange.alone()) BITRAIL_TRY(CheckGradient(state, gradient));
  if (!lamb.tensors.empty() && lamb.tensors[0].scaling == 0) BITRAIL_TRY(FindScaling(lamb, state));
  FusedPass pass(lamb, state, gradient);
  BITRAIL_TRY(Run(lamb.exchange, state, pass));
  for (size_t i = 0; i < state.segments.size(); i++) {
    const Segment& segment = state.segments[i];
    const Group& group = state.group(segment);
    LambTensor& tensor = lamb.tensors[i];
    if (segment.count == 0) continue;
    tensor.last = NextFactor(lamb, state, segment, pass.ratio[i], tensor.last);
    lamb.coefficient[i] = tensor.average * tensor.last;
    const size_t at = segment.offset;
    kernels::LambUpdate(group.factors, static_cast<float>(group.lr * lamb.coefficient[i]),
                        segment.count, lamb.guard, state.m.data() + at, state.v.data() + at,
                        state.params + at);
  }
  return {};
}

}  // namespace

Status OneBitLamb::step(State& state, const Gradient& gradient, int64_t step) {
  if (frozen()) return CompressedStep(*this, state, gradient);
  BITRAIL_TRY(CheckGradient(state, gradient));
  for (size_t i = 0; i < state.segments.size(); i++) {
    const double c = LambStep(state, state.segments[i], gradient, rules, guard);
    coefficient[i] = c;
    if (c != 1)
      tensors[i].average = rules.coeff_beta * tensors[i].average + (1 - rules.coeff_beta) * c;
  }
  BITRAIL_TRY(freeze.Update(state, step));
  if (fresh_at_step ? step == freeze.at : frozen()) fresh = state.v;
  return {};
}

void OneBitLamb::list(State&, bool, StateList* list) {
  freeze.List(list);
  list->add("exp_avg_sq_fresh", fresh);
  for (size_t i = 0; i < tensors.size(); i++) {
    const std::string prefix = "lamb." + std::to_string(i);
    list->add(prefix + ".coeff_freeze", tensors[i].average);
    list->add(prefix + ".last_factor", tensors[i].last);
    list->add(prefix + ".scaling_coeff", tensors[i].scaling);
  }
  ListErrors(exchange, list);
}

Status OneBitLamb::loaded(State& state, int64_t step, Loaded rule) {
  const bool was_frozen = frozen();
  freeze.Loaded(step);
  exchange.broken = false;
  // Back in warm-up, also (DeepSpeed's rule) where it never ended, the average starts over.
  if (!frozen() && (rule == Loaded::reset || was_frozen))
    std::fill(tensors.begin(), tensors.end(), LambTensor());
  // Frozen by today's options alone.
  if (frozen() && !was_frozen && !fresh_at_step) fresh = state.v;
  if (rule == Loaded::exact && frozen()) return {};
  return exchange.reset_errors();
}

Status MakeOneBitLamb(bitrail_comm_t comm, const Options& options, const State& state,
                      std::unique_ptr<Method>* method) {
  auto made = std::make_unique<OneBitLamb>();
  made->rules = options.lamb;
  made->guard = !options.compat(BITRAIL_COMPAT_UPDATE_DEAD);
  made->skip_dead = !options.compat(BITRAIL_COMPAT_DEAD_RATIO);
  made->fails_at_zero = options.compat(BITRAIL_COMPAT_ZERO_MOMENTUM);
  made->fresh_at_step = options.compat(BITRAIL_COMPAT_FRESH_FROM_ZERO);
  made->fresh.assign(state.elements(), 0.0f);
  made->tensors.resize(state.segments.size());
  made->coefficient.assign(state.segments.size(), 1.0);
  const bitrail_layout_t layout =
      options.c.layout == BITRAIL_LAYOUT_DEFAULT ? BITRAIL_LAYOUT_FUSED : options.c.layout;
  const bool keep_tail =
      layout == BITRAIL_LAYOUT_FUSED && options.c.padding == BITRAIL_PADDING_DEEPSPEED;
  BITRAIL_TRY(MakeExchange(comm, options, state, layout, keep_tail, &made->exchange));
  MakeFreeze(comm, options, state, made->name(), false, &made->freeze);
  *method = std::move(made);
  return {};
}

}  // namespace bitrail::optimizers
