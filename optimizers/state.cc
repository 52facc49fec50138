#include "optimizers/state.h"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host/convert.h"

namespace bitrail::optimizers {
namespace {

// What the first header had.
constexpr size_t kLeastGroup = offsetof(bitrail_param_group_t, non_freeze);

Status CheckOptions(const bitrail_optimizer_options_t& options) {
  if (options.segments == 0 || options.segment == nullptr) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "an optimizer needs at least one segment");
  }
  if (options.groups == 0 || options.group == nullptr) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "an optimizer needs at least one parameter group");
  }
  return {};
}

Status MakeGroup(const bitrail_param_group_t& from, size_t index, Group* group) {
  const auto beta = [](double value) { return value >= 0 && value < 1; };
  const auto amount = [](double value) { return value >= 0 && std::isfinite(value); };
  if (!amount(from.lr) || !beta(from.beta1) || !beta(from.beta2) || !amount(from.eps) ||
      !amount(from.weight_decay)) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "parameter group {}: lr {}, betas {} and {}, eps {}, weight_decay {}: the betas "
                   "belong into [0, 1), the others are finite and not negative",
                   index, from.lr, from.beta1, from.beta2, from.eps, from.weight_decay);
  }
  group->lr = from.lr;
  group->beta1 = from.beta1;
  group->beta2 = from.beta2;
  group->factors = {static_cast<float>(from.lr), static_cast<float>(from.beta1),
                    static_cast<float>(from.beta2), static_cast<float>(from.eps),
                    static_cast<float>(from.weight_decay)};
  group->non_freeze = from.struct_size > kLeastGroup && from.non_freeze != 0;
  return {};
}

// Later headers may have larger groups: the caller's struct_size is the distance between them.
Status MakeGroups(const bitrail_optimizer_options_t& options, std::vector<Group>* groups) {
  const size_t stride = options.group[0].struct_size;
  if (stride < kLeastGroup || stride % alignof(bitrail_param_group_t) != 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_param_group_t.struct_size is {}, at least {} expected", stride,
                   kLeastGroup);
  }
  groups->resize(options.groups);
  const auto* bytes = reinterpret_cast<const char*>(options.group);
  for (size_t i = 0; i < options.groups; i++) {
    const auto* from = reinterpret_cast<const bitrail_param_group_t*>(bytes + i * stride);
    if (from->struct_size != stride) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "parameter group {}: struct_size is {}, not {}",
                     i, from->struct_size, stride);
    }
    BITRAIL_TRY(MakeGroup(*from, i, &(*groups)[i]));
  }
  return {};
}

Status MakeSegment(const bitrail_param_segment_t& from, size_t index, size_t groups, size_t offset,
                   Segment* segment) {
  if (from.group >= groups) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "segment {} names parameter group {} of {}", index,
                   from.group, groups);
  }
  if (from.count > SIZE_MAX / 16 - offset) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "segment {}: {} elements are too many", index,
                   from.count);
  }
  segment->offset = offset;
  segment->count = from.count;
  segment->group = from.group;
  if (from.mask == nullptr) return {};
  segment->mask.assign(from.mask, from.mask + from.count);
  for (size_t i = 0; i < from.count; i++) {
    if (from.mask[i] != 0 && from.mask[i] != 1) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "segment {}: mask[{}] is {}, not 0 or 1", index,
                     i, from.mask[i]);
    }
  }
  return {};
}

// 16-bit parameters: their float32 masters.
void MakeMasters(const void* params, bitrail_type_t type, size_t elements, State* state) {
  state->masters.resize(elements);
  const auto widen = type == BITRAIL_FLOAT16 ? kernels::HalfToFloat : kernels::BFloat16ToFloat;
  widen(static_cast<const uint16_t*>(params), elements, state->masters.data());
  state->params = state->masters.data();
}

}  // namespace

size_t State::bytes() const {
  size_t floats = m.size() + v.size() + masters.size();
  for (const Segment& segment : segments) floats += segment.mask.size();
  return floats * sizeof(float);
}

Status MakeState(const Options& options, State* state) {
  const bitrail_optimizer_options_t& c = options.c;
  BITRAIL_TRY(CheckOptions(c));
  BITRAIL_TRY(MakeGroups(c, &state->groups));
  state->segments.resize(c.segments);
  size_t elements = 0;
  for (size_t i = 0; i < c.segments; i++) {
    BITRAIL_TRY(MakeSegment(c.segment[i], i, c.groups, elements, &state->segments[i]));
    elements += c.segment[i].count;
  }
  if (c.params == nullptr && elements != 0) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer options: params is NULL");
  }
  const bitrail_type_t type = options.precision.param_type;
  if (type == BITRAIL_FLOAT32) {
    state->params = static_cast<float*>(c.params);
  } else {
    MakeMasters(c.params, type, elements, state);
  }
  state->m.assign(elements, 0.0f);
  state->v.assign(elements, 0.0f);
  return {};
}

}  // namespace bitrail::optimizers
