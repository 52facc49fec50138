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
  bitrail_optimizer_options_t o = {};
  o.struct_size = sizeof o;
  o.params = static_cast<float*>(parameters_->stored());
  o.segments = segments.size();
  o.segment = segments.data();
  o.groups = 2;
  o.group = groups;
  o.freeze_step = FreezeStep(options);
  o.init_call = options.init_call ? 1 : 0;
  o.scale = options.scale;
  o.norm = BITRAIL_NORM_L2;
  // Without masks show what they are for.
  o.compat = options.mask ? 0 : BITRAIL_COMPAT_UPDATE_DEAD;

  if (options.optimizer == OptimizerKind::zero_one_adam || IsLamb(options.optimizer) ||
      options.precision != Precision::fp32 || options.clip > 0 ||
      options.freeze.kind == Freeze::Kind::automatic)
    return failure(BITRAIL_ERR_UNSUPPORTED, "{} in {}: not in this version",
                   Name(options.optimizer), Name(options.precision));
  bitrail_optimizer_t optimizer = nullptr;
  const bool onebit = options.optimizer == OptimizerKind::onebit_adam;
  const auto create = onebit ? bitrail_onebit_adam_create : bitrail_adam_create;
  BITRAIL_TRY(Checked(create(&optimizer, comm_, &o), "cannot make the optimizer"));
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
  void* encoded = Encode(gradient, record->loss_scale);
  if (naive_)
    BITRAIL_TRY(ShareNaively(encoded));
  else if (mean)
    BITRAIL_TRY(Checked(bitrail_allreduce(comm_, encoded, encoded, layout_.count,
                                          TypeOf(parameters_->precision), BITRAIL_AVG, nullptr),
                        "exchange of the gradient"));
  BITRAIL_TRY(Checked(bitrail_optimizer_step(optimizer_.get(), gradient), "optimizer step"));
  parameters_->Refresh();
  BITRAIL_TRY(WireBytes(&record->wire_bytes));
  record->wire_bytes -= before;
  record->kind = mean && !naive_ ? StepKind::full : StepKind::compressed;
  // A 1-bit exchange sends an eighth of a byte a value and more, agreeing on something nearly
  // nothing.
  if (record->kind == StepKind::compressed && bitrail_comm_world_size(comm_) > 1 &&
      record->wire_bytes < layout_.count / 16)
    record->kind = StepKind::local;
  return {};
}

}  // namespace bitrail::train
