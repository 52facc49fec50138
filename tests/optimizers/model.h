// A small model for optimizer tests: two tensors, gradients from a generator.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdint>
#include <vector>

namespace bitrail::test {

struct SmallModel {
  static constexpr size_t kFirst = 37, kSecond = 1000, kElements = kFirst + kSecond;

  std::vector<float> params;
  bitrail_param_group_t group = {};
  bitrail_param_segment_t segments[2] = {{kFirst, 0, nullptr}, {kSecond, 0, nullptr}};
  bitrail_optimizer_options_t options = {};

  SmallModel() : params(kElements, 1.0f) {
    group.struct_size = sizeof group;
    group.lr = 0.01;
    group.beta1 = 0.9;
    group.beta2 = 0.99;
    group.eps = 1e-8;
    options.struct_size = sizeof options;
    options.params = params.data();
    options.segments = 2;
    options.segment = segments;
    options.groups = 1;
    options.group = &group;
    options.freeze_step = 2;
  }
  SmallModel(const SmallModel&) = delete;
  SmallModel& operator=(const SmallModel&) = delete;

  // Values in [-1, 1) that differ from rank to rank and step to step.
  static std::vector<float> Gradient(int step, int rank) {
    std::vector<float> gradient(kElements);
    uint64_t z = static_cast<uint64_t>(step) * 1000 + static_cast<uint64_t>(rank);
    for (float& g : gradient) {
      z = z * 6364136223846793005u + 1442695040888963407u;
      g = static_cast<float>(static_cast<int32_t>(z >> 32)) * 0x1p-31f;
    }
    return gradient;
  }
};

}  // namespace bitrail::test
