#include "tools/train/exchange.h"

#include <utility>

namespace bitrail::train {
namespace {

bitrail_param_group_t MakeGroup(const TrainOptions& options, double weight_decay) {
  bitrail_param_group_t group = {};
  group.struct_size = sizeof group;
  group.lr = LearningRate(options, 1);
  group.beta1 = options.beta1;
  group.beta2 = options.beta2;
  group.eps = options.eps;
  group.weight_decay = weight_decay;
  return group;
}

bitrail_zero_one_t MakeZeroOne(const TrainOptions& options) {
  bitrail_zero_one_t o;
  bitrail_zero_one_defaults(&o);
  o.var_update_scaler = options.var_update_scaler;
  o.local_step_scaler = options.local_step_scaler;
  o.local_step_clipper = options.local_step_clipper;
  return o;
}

bitrail_lamb_t MakeLamb(const TrainOptions& options) {
  bitrail_lamb_t o;
  bitrail_lamb_defaults(&o);
  o.max_coeff = options.max_coeff;
  o.min_coeff = options.min_coeff;
  o.coeff_beta = options.coeff_beta;
  o.factor_max = options.factor_max;
  o.factor_min = options.factor_min;
  o.factor_threshold = options.factor_threshold;
  return o;
}

bitrail_precision_t MakePrecision(const TrainOptions& options) {
  bitrail_precision_t o;
  bitrail_precision_defaults(&o);
  o.param_type = TypeOf(options.precision);
  o.clip = options.clip;
  if (options.precision != Precision::fp16) return o;
  const LossScale& scale = options.loss_scale;
  o.loss_scale = scale.fixed > 0 ? BITRAIL_LOSS_SCALE_STATIC : BITRAIL_LOSS_SCALE_DYNAMIC;
  if (scale.fixed > 0) o.static_scale = scale.fixed;
  o.initial_scale_power = static_cast<int>(scale.initial_power);
  o.scale_window = scale.window;
  o.hysteresis = static_cast<int>(scale.hysteresis);
  o.min_scale = scale.minimum;
  return o;
}

using Create = bitrail_status_t (*)(bitrail_optimizer_t*, bitrail_comm_t,
                                    const bitrail_optimizer_options_t*);

Create CreateOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::onebit_adam:
      return bitrail_onebit_adam_create;
    case OptimizerKind::zero_one_adam:
      return bitrail_zero_one_adam_create;
    case OptimizerKind::lamb:
      return bitrail_lamb_create;
    case OptimizerKind::onebit_lamb:
      return bitrail_onebit_lamb_create;
    case OptimizerKind::adam:
    case OptimizerKind::naive_onebit:
      break;
  }
  return bitrail_adam_create;
}

}  // namespace

Status Checked(bitrail_status_t status, const char* what) {
  if (status == BITRAIL_OK) return {};
  const char* text = bitrail_last_error();
  return failure(status, "{}: {}", what, *text != '\0' ? text : bitrail_status_string(status));
}

Status Join(CommPtr* comm) {
  bitrail_comm_t raw = nullptr;
  BITRAIL_TRY(Checked(bitrail_comm_create(&raw, nullptr), "cannot join the job"));
  comm->reset(raw);
  return {};
}

Status Average(bitrail_comm_t comm, std::vector<float>* values) {
  return Checked(bitrail_allreduce(comm, values->data(), values->data(), values->size(),
                                   BITRAIL_FLOAT32, BITRAIL_AVG, nullptr),
                 "exchange of the losses");
}

Status Exchange::Create(bitrail_comm_t comm, const TrainOptions& options, const Layout& layout,
                        Storage* parameters, std::unique_ptr<Exchange>* exchange) {
  exchange->reset(new Exchange(comm, layout, parameters));
  Exchange* e = exchange->get();
  for (const Segment& segment : layout.segments)
    e->masks_.push_back(options.mask ? MomentumMask(options.shape, layout, segment)
                                     : std::vector<float>());
  if (parameters->precision != Precision::fp32) e->half_.resize(layout.count);
  BITRAIL_TRY(e->MakeOptimizer(options));
  e->naive_ = options.optimizer == OptimizerKind::naive_onebit;
  return e->naive_ && bitrail_comm_world_size(comm) > 1 ? e->MakeErrors(options) : Status();
}

Status Exchange::MakeOptimizer(const TrainOptions& options) {
  // In the order of Group.
  const bitrail_param_group_t groups[] = {MakeGroup(options, options.weight_decay),
                                          MakeGroup(options, 0)};
  std::vector<bitrail_param_segment_t> segments;
  for (size_t i = 0; i < layout_.segments.size(); i++) {
    const Segment& segment = layout_.segments[i];
    segments.push_back({segment.count, static_cast<size_t>(segment.group),
                        masks_[i].empty() ? nullptr : masks_[i].data()});
  }
  const bitrail_zero_one_t zero_one = MakeZeroOne(options);
  const bitrail_lamb_t lamb = MakeLamb(options);
  const bitrail_precision_t precision = MakePrecision(options);
  bitrail_optimizer_options_t o = {};
  o.struct_size = sizeof o;
  o.params = parameters_->stored();
  o.segments = segments.size();
  o.segment = segments.data();
  o.groups = 2;
  o.group = groups;
  o.freeze =
      options.freeze.kind == Freeze::Kind::automatic ? BITRAIL_FREEZE_AUTO : BITRAIL_FREEZE_STEP;
  o.freeze_step = FreezeStep(options);
  o.init_call = options.init_call ? 1 : 0;
  init_call_ = options.init_call && IsOneBit(options.optimizer);
  o.scale = options.scale;
  o.norm = BITRAIL_NORM_L2;
  o.layout = options.layout;
  o.padding = options.padding;
  o.compat = options.compat;
  // Without masks show what they are for.
  if (!options.mask) o.compat |= BITRAIL_COMPAT_UPDATE_DEAD;
  o.zero_one = &zero_one;
  o.lamb = &lamb;
  o.precision = &precision;
  bitrail_optimizer_t optimizer = nullptr;
  BITRAIL_TRY(
      Checked(CreateOf(options.optimizer)(&optimizer, comm_, &o), "cannot make the optimizer"));
  optimizer_.reset(optimizer);
  return {};
}

Status Exchange::MakeErrors(const TrainOptions& options) {
  std::vector<size_t> counts;
  for (const Segment& segment : layout_.segments) counts.push_back(segment.count);
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = counts.size();
  layout.counts = counts.data();
  layout.scale = options.scale;
  layout.norm = BITRAIL_NORM_L2;
  bitrail_error_state_t errors = nullptr;
  BITRAIL_TRY(Checked(bitrail_error_state_create(&errors, comm_, &layout), "error feedback"));
  errors_.reset(errors);
  return {};
}

Status Exchange::WireBytes(uint64_t* bytes) const {
  bitrail_counters_t counters = {};
  counters.struct_size = sizeof counters;
  BITRAIL_TRY(Checked(bitrail_comm_counters(comm_, &counters), "counters"));
  *bytes = counters.wire_bytes_sent;
  return {};
}

void* Exchange::Encode(float* gradient, double scale) {
  if (scale != 1)
    for (size_t i = 0; i < layout_.count; i++) gradient[i] *= static_cast<float>(scale);
  if (half_.empty()) return gradient;
  Narrow(parameters_->precision, gradient, layout_.count, half_.data());
  return half_.data();
}

// The negative control: the gradient itself goes through the 1-bit code with error feedback, and
// what comes out goes into Adam, variance included.
Status Exchange::ShareNaively(void* gradient) {
  if (errors_ == nullptr) return {};
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.send = gradient;
  call.recv = gradient;
  call.type = TypeOf(parameters_->precision);
  BITRAIL_TRY(Checked(bitrail_onebit_allreduce(errors_.get(), &call, nullptr),
                      "1-bit exchange of the gradient"));
  for (size_t i = 0; i < masks_.size(); i++) {
    const size_t offset = layout_.segments[i].offset;
    for (size_t k = 0; k < masks_[i].size(); k++) {
      if (masks_[i][k] != 0) continue;
      if (half_.empty())
        static_cast<float*>(gradient)[offset + k] = 0;
      else
        half_[offset + k] = 0;
    }
  }
  return {};
}

Status Exchange::Step(double lr, float* gradient, StepRecord* record) {
  uint64_t before = 0;
  BITRAIL_TRY(WireBytes(&before));
  for (const Group group : {Group::decay, Group::no_decay})
    BITRAIL_TRY(Checked(bitrail_optimizer_set_lr(optimizer_.get(), static_cast<size_t>(group), lr),
                        "set lr"));
  const bool mean = bitrail_optimizer_gradient(optimizer_.get()) == BITRAIL_GRADIENT_MEAN;
  const int64_t skipped = bitrail_optimizer_skipped_steps(optimizer_.get());
  record->loss_scale = bitrail_optimizer_loss_scale(optimizer_.get());
  void* encoded = Encode(gradient, record->loss_scale);
  if (naive_)
    BITRAIL_TRY(ShareNaively(encoded));
  else if (mean)
    BITRAIL_TRY(Checked(bitrail_allreduce(comm_, encoded, encoded, layout_.count,
                                          TypeOf(parameters_->precision), BITRAIL_AVG, nullptr),
                        "exchange of the gradient"));
  BITRAIL_TRY(Checked(
      bitrail_optimizer_step_typed(optimizer_.get(), encoded, TypeOf(parameters_->precision)),
      "optimizer step"));
  parameters_->Refresh();
  record->skipped = bitrail_optimizer_skipped_steps(optimizer_.get()) > skipped;
  BITRAIL_TRY(WireBytes(&record->wire_bytes));
  record->wire_bytes -= before;
  record->kind = mean && !naive_ ? StepKind::full : StepKind::compressed;
  // A 1-bit exchange sends an eighth of a byte a value and more, agreeing on something nearly
  // nothing.
  if (record->kind == StepKind::compressed && !record->skipped &&
      bitrail_comm_world_size(comm_) > 1 && record->wire_bytes < layout_.count / 16)
    record->kind = StepKind::local;
  return {};
}

Status Exchange::Save(const std::string& folder) {
  return Checked(bitrail_optimizer_save(optimizer_.get(), folder.c_str(), nullptr), "--save");
}

Status Exchange::Load(const std::string& folder, bool reset_errors) {
  bitrail_checkpoint_options_t o = {};
  o.struct_size = sizeof o;
  o.errors = reset_errors ? BITRAIL_ERRORS_RESET : BITRAIL_ERRORS_EXACT;
  BITRAIL_TRY(Checked(bitrail_optimizer_load(optimizer_.get(), folder.c_str(), &o), "--resume"));
  parameters_->Refresh();
  return {};
}

int64_t Exchange::StepsTaken() const {
  return bitrail_optimizer_step_count(optimizer_.get()) - (init_call_ ? 1 : 0) +
         bitrail_optimizer_skipped_steps(optimizer_.get());
}

}  // namespace bitrail::train
