#include "tools/train/exchange.h"

#include <utility>

namespace bitrail::train {
namespace {

bitrail_param_group_t MakeGroup(const TrainOptions& options, double weight_decay) {
  bitrail_param_group_t group = {};
  group.struct_size = sizeof group;
  group.lr = options.lr;
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

Status Exchange::Join(CommPtr* comm) {
  bitrail_comm_t raw = nullptr;
  BITRAIL_TRY(Checked(bitrail_comm_create(&raw, nullptr), "cannot join the job"));
  comm->reset(raw);
  return {};
}

Status Exchange::Create(bitrail_comm_t comm, const TrainOptions& options, const Layout& layout,
                        float* parameters, std::unique_ptr<Exchange>* exchange) {
  // In the order of Group.
  const bitrail_param_group_t groups[] = {MakeGroup(options, options.weight_decay),
                                          MakeGroup(options, 0)};
  std::vector<std::vector<float>> masks;
  std::vector<bitrail_param_segment_t> segments;
  for (const Segment& segment : layout.segments) {
    masks.push_back(options.mask ? MomentumMask(options.shape, layout, segment)
                                 : std::vector<float>());
    const std::vector<float>& mask = masks.back();
    segments.push_back(
        {segment.count, static_cast<size_t>(segment.group), mask.empty() ? nullptr : mask.data()});
  }
  bitrail_optimizer_options_t o = {};
  o.struct_size = sizeof o;
  o.params = parameters;
  o.segments = segments.size();
  o.segment = segments.data();
  o.groups = 2;
  o.group = groups;
  o.freeze_step = FreezeStep(options);
  o.init_call = 0;
  o.scale = options.scale;
  o.norm = BITRAIL_NORM_L2;
  // Without masks show what they are for.
  o.compat = options.mask ? 0 : BITRAIL_COMPAT_UPDATE_DEAD;

  bitrail_optimizer_t optimizer = nullptr;
  const bool onebit = options.optimizer == OptimizerKind::onebit_adam;
  const auto create = onebit ? bitrail_onebit_adam_create : bitrail_adam_create;
  BITRAIL_TRY(Checked(create(&optimizer, comm, &o), "cannot make the optimizer"));
  exchange->reset(new Exchange(comm, OptimizerPtr(optimizer), layout.count));
  return {};
}

Status Exchange::WireBytes(uint64_t* bytes) const {
  bitrail_counters_t counters = {};
  counters.struct_size = sizeof counters;
  BITRAIL_TRY(Checked(bitrail_comm_counters(comm_, &counters), "counters"));
  *bytes = counters.wire_bytes_sent;
  return {};
}

Status Exchange::Step(double lr, float* gradient, uint64_t* wire_bytes) {
  uint64_t before = 0;
  BITRAIL_TRY(WireBytes(&before));
  for (const Group group : {Group::decay, Group::no_decay})
    BITRAIL_TRY(Checked(bitrail_optimizer_set_lr(optimizer_.get(), static_cast<size_t>(group), lr),
                        "set lr"));
  if (bitrail_optimizer_gradient(optimizer_.get()) == BITRAIL_GRADIENT_MEAN)
    BITRAIL_TRY(Checked(
        bitrail_allreduce(comm_, gradient, gradient, count_, BITRAIL_FLOAT32, BITRAIL_AVG, nullptr),
        "exchange of the gradient"));
  BITRAIL_TRY(Checked(bitrail_optimizer_step(optimizer_.get(), gradient), "optimizer step"));
  BITRAIL_TRY(WireBytes(wire_bytes));
  *wire_bytes -= before;
  return {};
}

Status Exchange::Average(std::vector<float>* values) {
  return Checked(bitrail_allreduce(comm_, values->data(), values->data(), values->size(),
                                   BITRAIL_FLOAT32, BITRAIL_AVG, nullptr),
                 "exchange of the losses");
}

}  // namespace bitrail::train
