#include "optimizers/state.h"

#include <cmath>
#include <cstdint>

namespace bitrail::optimizers {
namespace {

constexpr size_t kLeastOptions = offsetof(bitrail_optimizer_options_t, update_dead);

Status CheckOptions(const bitrail_optimizer_options_t* options) {
  if (options == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer options are NULL");
  if (options->struct_size < kLeastOptions) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_optimizer_options_t.struct_size is {}, at least {} expected",
                   options->struct_size, kLeastOptions);
  }
  if (options->segments == 0 || options->segment == nullptr) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "an optimizer needs at least one segment");
  }
  if (options->groups == 0 || options->group == nullptr) {
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
  group->beta1 = from.beta1;
  group->beta2 = from.beta2;
  group->factors = {static_cast<float>(from.lr), static_cast<float>(from.beta1),
                    static_cast<float>(from.beta2), static_cast<float>(from.eps),
                    static_cast<float>(from.weight_decay)};
  return {};
}

// Later headers may have larger groups: the caller's struct_size is the distance between them.
Status MakeGroups(const bitrail_optimizer_options_t& options, std::vector<Group>* groups) {
  const size_t stride = options.group[0].struct_size;
  if (stride < sizeof(bitrail_param_group_t) || stride % alignof(bitrail_param_group_t) != 0) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_param_group_t.struct_size is {}, at least {} expected", stride,
                   sizeof(bitrail_param_group_t));
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

}  // namespace

size_t State::bytes() const {
  size_t floats = m.size() + v.size();
  for (const Segment& segment : segments) floats += segment.mask.size();
  return floats * sizeof(float);
}

Status MakeState(const bitrail_optimizer_options_t* options, State* state) {
  BITRAIL_TRY(CheckOptions(options));
  BITRAIL_TRY(MakeGroups(*options, &state->groups));
  state->segments.resize(options->segments);
  size_t elements = 0;
  for (size_t i = 0; i < options->segments; i++) {
    BITRAIL_TRY(
        MakeSegment(options->segment[i], i, options->groups, elements, &state->segments[i]));
    elements += options->segment[i].count;
  }
  if (options->params == nullptr && elements != 0) {
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "optimizer options: params is NULL");
  }
  state->params = options->params;
  state->m.assign(elements, 0.0f);
  state->v.assign(elements, 0.0f);
  return {};
}

bool UpdateDead(const bitrail_optimizer_options_t& options) {
  return options.struct_size >= kLeastOptions + sizeof(int) && options.update_dead != 0;
}

}  // namespace bitrail::optimizers
