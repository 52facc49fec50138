// A trajectory recorded from DeepSpeed's optimizers (tests/data/onebit/README.md), as a model to
// train: segments, groups, options, gradients.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "optimizers/optimizer.h"
#include "tests/support/golden.h"

namespace bitrail::test {

struct GoldenCase {
  Golden golden;
  nlohmann::json index = ReadGoldenIndex();
  std::vector<float> initial = ReadGoldenFloats("init_params.f32");
  std::vector<float> bank = ReadGoldenFloats("grads.f32");  // [steps][4][values]
  std::vector<float> masks = ReadGoldenFloats("masks.f32");

  explicit GoldenCase(const std::string& name) : golden(ReadGolden("traj/" + name)) {}
  const nlohmann::json& text() const { return golden.text; }
  size_t world() const { return text().at("world"); }
  int steps() const { return text().at("steps"); }
  const nlohmann::json& tensor(const std::string& name) const {
    for (const auto& entry : index.at("tensors")) {
      if (entry.at("name") == name) return entry;
    }
    throw std::runtime_error("no tensor " + name);
  }
  int after(const char* key) const { return text().value(key, 0); }  // save_after, load_after
};

// What the arrays of a case are named by: a tensor, or the tensors of a group joined.
struct GoldenEntry {
  std::string name;
  size_t offset = 0, count = 0;  // in the flat arrays
};

// Segments in the order of the groups. A case with flat groups is one segment a tensor too: what it
// tests is the layout per group.
struct GoldenModel {
  const GoldenCase& of;
  bool flat;
  std::vector<bitrail_param_group_t> groups;
  std::vector<bitrail_param_segment_t> segments;
  std::vector<size_t> source;  // by segment: first value in the recorded banks
  std::vector<GoldenEntry> entries;
  std::vector<bool> full;  // by entry: of a non_freeze group
  size_t elements = 0;

  GoldenModel(const GoldenCase& from, int mask_kind)
      : of(from), flat(from.text().value("flat", false)) {
    for (const auto& group : from.text().at("groups")) AddGroup(group, mask_kind);
  }

  std::vector<float> Gather(const float* bank) const {
    std::vector<float> values;
    for (size_t i = 0; i < segments.size(); i++)
      values.insert(values.end(), bank + source[i], bank + source[i] + segments[i].count);
    return values;
  }

  // Of training step `step` on `rank`: its own, or the mean summed in rank order.
  std::vector<float> Gradient(int step, size_t rank, bool mean) const {
    constexpr size_t kBankRanks = 4;
    const size_t n = of.initial.size(), rows = of.bank.size() / n / kBankRanks;
    const size_t row =
        (static_cast<size_t>(step - 1) + of.text().at("grad_shift").get<size_t>()) % rows;
    const auto of_rank = [&](size_t r) {
      return Gather(of.bank.data() + (row * kBankRanks + r) * n);
    };
    if (!mean) return of_rank(rank);
    std::vector<float> sum = of_rank(0);
    for (size_t r = 1; r < of.world(); r++) {
      const std::vector<float> more = of_rank(r);
      for (size_t i = 0; i < sum.size(); i++) sum[i] += more[i];
    }
    for (float& g : sum) g *= 1.0f / static_cast<float>(of.world());
    return sum;
  }

 private:
  void AddGroup(const nlohmann::json& from, int mask_kind) {
    bitrail_param_group_t group = {};
    group.struct_size = sizeof group;
    const auto& params = of.text().at("params");
    group.lr = params.at("lr");
    group.beta1 = params.contains("betas") ? params.at("betas").at(0).get<double>() : 0.9;
    group.beta2 = params.contains("betas") ? params.at("betas").at(1).get<double>() : 0.999;
    group.eps = 1e-8;
    group.weight_decay = from.at("weight_decay");
    group.non_freeze = from.value("non_freeze", false) ? 1 : 0;
    GoldenEntry joined{"", elements, 0};
    for (const auto& tensor : from.at("tensors")) {
      const auto& entry = of.tensor(tensor);
      const size_t count = entry.at("count");
      const bool masked = from.value("mask", false);
      const float* mask =
          masked ? of.masks.data() + static_cast<size_t>(mask_kind) * count : nullptr;
      segments.push_back({count, groups.size(), mask});
      source.push_back(entry.at("offset"));
      if (!flat) entries.push_back({tensor, elements, count});
      if (!flat) full.push_back(group.non_freeze != 0);
      joined.name += (joined.name.empty() ? "" : "+") + tensor.get<std::string>();
      joined.count += count;
      elements += count;
    }
    if (flat) entries.push_back(joined);
    if (flat) full.push_back(group.non_freeze != 0);
    groups.push_back(group);
  }
};

// Makes the recorded optimizer over `params`, with `compat`.
inline bitrail_optimizer_t MakeGolden(const GoldenModel& model, bitrail_comm_t comm, float* params,
                                      uint32_t compat) {
  const auto& text = model.of.text();
  const auto& p = text.at("params");
  const std::string kind = text.at("optimizer");
  bitrail_zero_one_t zero_one;
  bitrail_zero_one_defaults(&zero_one);
  zero_one.var_update_scaler = p.value("var_update_scaler", zero_one.var_update_scaler);
  zero_one.local_step_scaler = p.value("local_step_scaler", zero_one.local_step_scaler);
  zero_one.local_step_clipper = p.value("local_step_clipper", zero_one.local_step_clipper);
  bitrail_lamb_t lamb;
  bitrail_lamb_defaults(&lamb);
  lamb.max_coeff = p.value("max_coeff", lamb.max_coeff);
  lamb.min_coeff = p.value("min_coeff", lamb.min_coeff);
  lamb.coeff_beta = p.value("coeff_beta", lamb.coeff_beta);
  lamb.factor_max = p.value("factor_max", lamb.factor_max);
  lamb.factor_min = p.value("factor_min", lamb.factor_min);
  lamb.factor_threshold = p.value("factor_threshold", lamb.factor_threshold);
  bitrail_optimizer_options_t options = {};
  options.struct_size = sizeof options;
  options.params = params;
  options.segments = model.segments.size();
  options.segment = model.segments.data();
  options.groups = model.groups.size();
  options.group = model.groups.data();
  options.freeze_step = p.contains("freeze_step") ? p.at("freeze_step") : p.at("var_freeze_step");
  options.init_call = text.at("init") == "zero_grad_call" ? 1 : 0;
  options.compat = compat;
  options.layout = model.flat ? BITRAIL_LAYOUT_PER_GROUP : BITRAIL_LAYOUT_DEFAULT;
  options.zero_one = &zero_one;
  options.lamb = &lamb;
  auto create = bitrail_onebit_adam_create;
  if (kind == "ZeroOneAdam") create = bitrail_zero_one_adam_create;
  if (kind == "OneBitLamb") create = bitrail_onebit_lamb_create;
  bitrail_optimizer_t optimizer = nullptr;
  if (create(&optimizer, comm, &options) != BITRAIL_OK)
    throw std::runtime_error(bitrail_last_error());
  return optimizer;
}

}  // namespace bitrail::test
