// The sections "optimizer" and "scheduler" of DeepSpeed's configuration.
#include <limits>
#include <string>

#include "tools/train/deepspeed_config.h"
#include "tools/train/json_section.h"

namespace bitrail::train {
namespace {

using nlohmann::json;

constexpr double kHuge = std::numeric_limits<float>::max();
constexpr double kTiny = std::numeric_limits<float>::min();
constexpr double kBelowOne = 1 - 1e-9;
constexpr int64_t kMaxCount = 1 << 30;

void Betas(JsonSection* s, TrainOptions* o) {
  const json* betas = s->Find("betas");
  if (betas == nullptr) return;
  const auto good = [](const json& beta) {
    return beta.is_number() && beta.get<double>() >= 0 && beta.get<double>() <= kBelowOne;
  };
  if (!betas->is_array() || betas->size() != 2 || !good((*betas)[0]) || !good((*betas)[1]))
    return s->Fail("betas", "must be two numbers of at least 0 and below 1");
  o->beta1 = (*betas)[0].get<double>();
  o->beta2 = (*betas)[1].get<double>();
}

void CommonParameters(JsonSection* s, TrainOptions* o) {
  o->lr = 1e-3;
  o->beta1 = 0.9;
  o->beta2 = 0.999;
  o->eps = 1e-8;
  o->weight_decay = 0;
  // 0 is allowed where a scheduler sets the rate; without one CheckOptions refuses it.
  s->Real("lr", &o->lr, 0, kHuge);
  o->lamb_lr = o->lr;
  Betas(s, o);
  s->Real("eps", &o->eps, kTiny, kHuge);
  s->Real("weight_decay", &o->weight_decay, 0, kHuge);
  s->Refuse("max_grad_norm",
            "is no parameter of an optimizer here, nor in DeepSpeed's engine; use the file's own "
            "key gradient_clipping");
  bool amsgrad = false;
  if (s->Boolean("amsgrad", &amsgrad) && amsgrad) s->Fail("amsgrad", "true is not supported");
  bool inside = false;
  if (s->Boolean("eps_inside_sqrt", &inside) && inside)
    s->Note(
        "optimizer.params.eps_inside_sqrt is read and not followed, as in DeepSpeed: eps is "
        "added outside");
}

// DeepSpeed's 1-bit optimizers take bias_correction and do without it; its Adam and Lamb follow it.
void BiasCorrection(JsonSection* s, bool onebit) {
  bool wanted = !onebit;
  s->Boolean("bias_correction", &wanted);
  if (!wanted) return;
  s->Note(onebit ? "optimizer.params.bias_correction is read and not followed, as in DeepSpeed"
                 : "optimizer.params.bias_correction is not followed (DeepSpeed's default is "
                   "true): Adam and Lamb are the 1-bit optimizers' first phase here, without it");
}

void Communication(JsonSection* s, TrainOptions* o) {
  size_t backend = 0;
  s->Word("comm_backend_name", {"nccl", "mpi"}, &backend);
  o->comm_backend = backend == 0 ? "nccl" : "mpi";
  if (backend == 0)
    s->Note("comm_backend_name nccl: data in host memory travels by BitRail's own transports");
  bool cuda_aware = false;
  if (s->Boolean("cuda_aware", &cuda_aware) && cuda_aware)
    s->Note("optimizer.params.cuda_aware has no effect: parameters are in host memory");
}

void FreezeAt(JsonSection* s, const char* key, TrainOptions* o) {
  int64_t steps = 100000;
  s->Integer(key, &steps, 0, kMaxCount);
  o->freeze = {Freeze::Kind::steps, ScaledSteps(*o, steps), 0};
}

void LambBounds(JsonSection* s, TrainOptions* o) {
  o->max_coeff = 10;
  o->min_coeff = 0.01;
  s->Real("max_coeff", &o->max_coeff, 0, kHuge);
  s->Real("min_coeff", &o->min_coeff, 0, kHuge);
}

void ParseParameters(JsonSection* s, TrainOptions* o) {
  CommonParameters(s, o);
  const bool onebit = o->optimizer != OptimizerKind::adam && o->optimizer != OptimizerKind::lamb;
  BiasCorrection(s, onebit);
  if (onebit) Communication(s, o);
  switch (o->optimizer) {
    case OptimizerKind::onebit_adam:
      FreezeAt(s, "freeze_step", o);
      break;
    case OptimizerKind::zero_one_adam:
      FreezeAt(s, "var_freeze_step", o);
      o->var_update_scaler = 16;
      o->local_step_scaler = 32678;
      o->local_step_clipper = 16;
      s->Integer("var_update_scaler", &o->var_update_scaler, 1, kMaxCount);
      s->Integer("local_step_scaler", &o->local_step_scaler, 1, kMaxCount);
      o->local_step_scaler = ScaledSteps(*o, o->local_step_scaler);
      s->Integer("local_step_clipper", &o->local_step_clipper, 1, kMaxCount);
      break;
    case OptimizerKind::onebit_lamb:
      FreezeAt(s, "freeze_step", o);
      LambBounds(s, o);
      o->coeff_beta = 0.9;
      o->factor_max = 4;
      o->factor_min = 0.5;
      o->factor_threshold = 0.1;
      s->Real("coeff_beta", &o->coeff_beta, 0, kBelowOne);
      s->Real("factor_max", &o->factor_max, 0, kHuge);
      s->Real("factor_min", &o->factor_min, 0, kHuge);
      s->Real("factor_threshold", &o->factor_threshold, 0, kBelowOne);
      break;
    case OptimizerKind::lamb:
      LambBounds(s, o);
      break;
    default: {
      s->Ignore("torch_adam", "there is one Adam");
      bool decoupled = true;
      if (s->Boolean("adam_w_mode", &decoupled) && !decoupled)
        s->Fail("adam_w_mode", "false is not supported: weight decay is decoupled, as AdamW's is");
    }
  }
}

}  // namespace

Status ParseDeepSpeedOptimizer(const json& object, const JsonSection& file, TrainOptions* o) {
  constexpr OptimizerKind kKinds[] = {OptimizerKind::onebit_adam, OptimizerKind::zero_one_adam,
                                      OptimizerKind::onebit_lamb, OptimizerKind::adam,
                                      OptimizerKind::adam,        OptimizerKind::lamb};
  JsonSection s(object, file.file(), file.Path("optimizer"), file.notes());
  size_t type = 0;
  const json* params = s.Object("params");
  s.Ignore("legacy_fusion", "there is no such thing");
  if (!s.Word("type", {"OneBitAdam", "ZeroOneAdam", "OneBitLamb", "Adam", "AdamW", "Lamb"},
              &type)) {
    if (!object.contains("type")) s.Fail("type", "is missing");
    return s.Finish();
  }
  BITRAIL_TRY(s.Finish());
  o->optimizer = kKinds[type];
  o->init_call = true;
  o->lr_warmup = 0;
  o->lr_decay = false;
  o->warmup.reset();
  const json none = json::object();
  JsonSection p(params == nullptr ? none : *params, file.file(), s.Path("params"), file.notes());
  ParseParameters(&p, o);
  return p.Finish();
}

Status ParseDeepSpeedScheduler(const json& object, const JsonSection& file, TrainOptions* o) {
  JsonSection s(object, file.file(), file.Path("scheduler"), file.notes());
  size_t type = 0;
  const json* params = s.Object("params");
  if (!s.Word("type", {"WarmupLR", "WarmupDecayLR"}, &type)) {
    if (!object.contains("type")) s.Fail("type", "is missing");
    return s.Finish();
  }
  BITRAIL_TRY(s.Finish());
  const bool decay = type == 1;
  const json none = json::object();
  JsonSection p(params == nullptr ? none : *params, file.file(), s.Path("params"), file.notes());
  WarmupSchedule w;
  // WarmupLR without a maximum rises to the optimizer's lr.
  if (!decay) w.max_lr = o->lr;
  p.Real("warmup_min_lr", &w.min_lr, 0, kHuge);
  p.Real("warmup_max_lr", &w.max_lr, 0, kHuge);
  p.Integer("warmup_num_steps", &w.warmup_steps, 1, kMaxCount);
  w.warmup_steps = ScaledSteps(*o, w.warmup_steps);
  size_t rise = 0;
  p.Word("warmup_type", {"log", "linear"}, &rise);
  w.logarithmic = rise == 0;
  p.Integer("last_batch_iteration", &w.last_iteration, -1, kMaxCount);
  if (decay && !p.Integer("total_num_steps", &w.total_steps, 1, kMaxCount) &&
      (params == nullptr || !params->contains("total_num_steps")))
    p.Fail("total_num_steps", "is missing");
  w.total_steps = ScaledSteps(*o, w.total_steps);
  if (decay && w.total_steps < w.warmup_steps)
    p.Note("scheduler: total_num_steps is below warmup_num_steps: the rate never falls gently");
  o->warmup = w;
  return p.Finish();
}

}  // namespace bitrail::train
