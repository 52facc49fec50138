#include "optimizers/zero_one_passes.h"

#include <algorithm>
#include <cmath>

#include "kernels/host/update_one.h"
#include "kernels/host/zero_one.h"

namespace bitrail::optimizers {
namespace {

// Nothing was compressed with one rank, so there is nothing to mask.
const float* Mask(const ZeroOneAdam& z, const Segment& segment, size_t begin) {
  return z.exchange.alone() ? nullptr : segment.mask_at(begin);
}

}  // namespace

void GradientPass::produce(size_t index, size_t begin, size_t count, float* out) {
  std::copy_n(gradient.at(state.segments[index].offset + begin, count, tile), count, out);
}

void GradientPass::consume(size_t index, size_t begin, size_t count, const float* values) {
  const Segment& segment = state.segments[index];
  const Group& group = state.group(segment);
  const size_t at = segment.offset + begin;
  float* m = state.m.data() + at;
  if (z.exchange.alone() && z.stands_still) {
    kernels::OneBitAdamStep(group.factors, count, m, nullptr, z.guard, m, state.v.data() + at,
                            state.params + at);
    return;
  }
  kernels::MomentumStep(group.factors, group.beta1, count, values, Mask(z, segment, begin), z.guard,
                        m, state.v.data() + at, state.params + at);
}

void SyncPass::produce(size_t index, size_t begin, size_t count, float* out) {
  const Segment& segment = state.segments[index];
  const Group& group = state.group(segment);
  const size_t at = segment.offset + begin;
  kernels::SyncValue(group.factors, group.beta1, count, gradient.at(at, count, tile),
                     state.m.data() + at, state.v.data() + at, state.params + at,
                     z.base.data() + at, z.guard, out);
}

void SyncPass::consume(size_t index, size_t begin, size_t count, const float* values) {
  const Segment& segment = state.segments[index];
  const Group& group = state.group(segment);
  const size_t at = segment.offset + begin;
  float* m = state.m.data() + at;
  const double sum = z.lr_sum[segment.group] + group.lr;
  if (sum == 0 && !z.divides_by_zero) {  // this group stood still, whatever came back for it
    kernels::MomentumStep(group.factors, group.beta1, count, gradient.at(at, count, tile), nullptr,
                          z.guard, m, state.v.data() + at, state.params + at);
    return;
  }
  kernels::SyncStep(group.factors, static_cast<float>(-1 / sum), count, values,
                    Mask(z, segment, begin), z.guard, m, state.v.data() + at, state.params + at,
                    z.base.data() + at);
}

void AccumulatedStep(const Group& group, bool guard, size_t n, const float* gradient, float* m,
                     const float* v, float* x, float* accumulator) {
  for (size_t i = 0; i < n; i++) {
    kernels::MomentumReference(group.beta1, 1, gradient + i, m + i, m + i);
    const float moved =
        group.factors.lr * kernels::UpdateOne(group.factors, guard, m[i], v[i], x[i]);
    x[i] -= moved;
    accumulator[i] -= moved;
  }
}

void AccumulatedSyncPass::produce(size_t index, size_t begin, size_t count, float* out) {
  const Segment& segment = state.segments[index];
  const Group& group = state.group(segment);
  const size_t at = segment.offset + begin;
  const float* g = gradient.at(at, count, tile);
  for (size_t i = 0; i < count; i++) {
    float m = state.m[at + i], x = state.params[at + i], a = z.base[at + i];
    const float v = state.v[at + i];
    AccumulatedStep(group, z.guard, 1, g + i, &m, &v, &x, &a);
    out[i] = a * (std::sqrt(v) + group.factors.eps);
  }
}

void AccumulatedSyncPass::consume(size_t index, size_t begin, size_t count, const float* values) {
  const Segment& segment = state.segments[index];
  const Group& group = state.group(segment);
  const size_t at = segment.offset + begin;
  const float* g = gradient.at(at, count, tile);
  const float* mask = Mask(z, segment, begin);
  const auto factor = static_cast<float>(-1 / (z.lr_sum[segment.group] + group.lr));
  for (size_t i = 0; i < count; i++) {
    float& m = state.m[at + i];
    float& x = state.params[at + i];
    float& a = z.base[at + i];
    const float v = state.v[at + i];
    AccumulatedStep(group, z.guard, 1, g + i, &m, &v, &x, &a);
    x -= a;
    const float mean = mask == nullptr ? values[i] : values[i] * mask[i];
    m = mean * factor;
    if (!z.guard || v != 0) x += mean / (std::sqrt(v) + group.factors.eps);
    a = 0;
  }
}

}  // namespace bitrail::optimizers
