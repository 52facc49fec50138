#include "optimizers/checkpoint_state.h"

#include <algorithm>

#include "optimizers/checkpoint/agree.h"
#include "optimizers/checkpoint/load.h"
#include "optimizers/checkpoint/respread.h"
#include "optimizers/checkpoint/save.h"
#include "optimizers/error_form.h"
#include "optimizers/exchange.h"
#include "runtime/trace/log.h"

namespace bitrail::optimizers {
namespace {

using checkpoint::Checkpoint;
using checkpoint::Content;
using checkpoint::Element;
using checkpoint::Get;
using checkpoint::Spread;
using checkpoint::TensorInfo;

// How the errors lie, beside the world size.
constexpr const char* kFormOf[] = {"layout", "padding", "scale", "norm", "block"};

std::vector<int64_t> ErrorOptions(const Options& options) {
  return {options.c.layout, options.c.padding, options.c.scale, options.c.norm,
          static_cast<int64_t>(options.c.block)};
}

std::vector<checkpoint::ModelTensor> ModelOf(const State& state) {
  std::vector<checkpoint::ModelTensor> model;
  for (const Segment& segment : state.segments)
    model.push_back({"segment " + std::to_string(model.size()), segment.count});
  return model;
}

// Of all masks; a segment without one counts as ones.
int64_t MaskHash(const State& state) {
  uint64_t hash = 0;
  for (size_t i = 0; i < state.segments.size(); i++) {
    const Segment& segment = state.segments[i];
    if (std::find(segment.mask.begin(), segment.mask.end(), 0.0f) == segment.mask.end()) continue;
    hash = (hash ^ (ParameterHash(segment.mask.data(), segment.count) + i)) * 0x9E3779B97F4A7C15u;
  }
  return static_cast<int64_t>(hash);
}

// What an optimizer without the feature at hand has not saved.
bool Optional(const std::string& name) {
  return name.starts_with("loss_scale") || name.starts_with("variance_norm");
}

// `place` outlives the content.
Content Describe(bitrail_optimizer& o, const ErrorPlace& place) {
  Content content;
  content.optimizer = o.method->name();
  content.step = o.step;
  content.model = ModelOf(o.state);
  const StateList list = ListState(o, o.method->frozen());
  for (const StateScalar& scalar : list.scalars) {
    if (const auto* integer = std::get_if<int64_t*>(&scalar.value)) {
      content.scalars[scalar.name] = **integer;
    } else {
      content.scalars[scalar.name] = *std::get<double*>(scalar.value);
    }
  }
  content.scalars["frozen"] = int64_t{o.method->frozen()};
  content.scalars["masks"] = MaskHash(o.state);
  const std::vector<int64_t> form = ErrorOptions(o.options);
  for (size_t i = 0; i < form.size(); i++) content.scalars[kFormOf[i]] = form[i];
  for (const StateTensor& tensor : list.tensors) {
    content.tensors.push_back({tensor.name,
                               Element::float32,
                               tensor.per_rank ? Spread::per_rank : Spread::replicated,
                               {tensor.count},
                               tensor.data});
  }
  if (place.rails != 0) content.tensors.push_back(TensorOf(place));
  return content;
}

// A load under way.
struct Source {
  Checkpoint& checkpoint;
  const StateList& list;
  bitrail_optimizer& optimizer;
  Loaded rule;

  int old_world() const { return checkpoint.manifest.world_size; }
  int world() const {
    return optimizer.comm == nullptr ? 1 : bitrail_comm_world_size(optimizer.comm);
  }
  int rank() const { return optimizer.comm == nullptr ? 0 : bitrail_comm_rank(optimizer.comm); }
  bool same_world() const { return old_world() == world(); }
  // Which old rank's own values this rank goes on with.
  int stands_for() const { return rank() * old_world() / world(); }
};

Status CheckScalars(const Source& source) {
  const checkpoint::Scalars& saved = source.checkpoint.manifest.scalars;
  for (const StateScalar& scalar : source.list.scalars) {
    const auto found = saved.find(scalar.name);
    if (found == saved.end() && Optional(scalar.name)) continue;
    const bool fits = found != saved.end() && found->second.index() == scalar.value.index();
    if (!fits) {
      return failure(BITRAIL_ERR_MISMATCH, "checkpoint {}: no value {} for {}",
                     source.checkpoint.directory, scalar.name, source.optimizer.method->name());
    }
  }
  return {};
}

// Whether a tensor is to be read, and whether it can be.
Status CheckTensors(const Source& source) {
  for (const StateTensor& tensor : source.list.tensors) {
    if (tensor.error) continue;
    const TensorInfo* info = Find(source.checkpoint, tensor.name);
    if (info == nullptr || info->type != Element::float32) {
      return failure(BITRAIL_ERR_MISMATCH, "checkpoint {}: no float32 tensor {} for {}",
                     source.checkpoint.directory, tensor.name, source.optimizer.method->name());
    }
    const uint64_t count = info->spread == Spread::per_rank
                               ? CountOfRank(source.checkpoint, tensor.name, source.stands_for())
                               : checkpoint::Count(info->shape);
    if (count != tensor.count) {
      return failure(BITRAIL_ERR_MISMATCH, "checkpoint {}: tensor {} has {} elements, not {}",
                     source.checkpoint.directory, tensor.name, count, tensor.count);
    }
  }
  return {};
}

void TakeScalars(const Source& source) {
  const checkpoint::Scalars& saved = source.checkpoint.manifest.scalars;
  for (const StateScalar& scalar : source.list.scalars) {
    if (const auto* integer = std::get_if<int64_t*>(&scalar.value)) {
      Get(saved, scalar.name, *integer);
    } else {
      Get(saved, scalar.name, std::get<double*>(scalar.value));
    }
  }
}

Status ReadErrors(const Source& source, const ErrorForm& saved, const StateTensor& tensor) {
  Checkpoint& checkpoint = source.checkpoint;
  const bool worker = tensor.name == "worker_error", server = tensor.name == "server_error";
  const Exchange& exchange = *source.optimizer.method->compressed();
  const ErrorForm own = FormOf(*exchange.errors);
  // The tail is the same in all forms.
  if (source.same_world() && (saved == own || (!worker && !server))) {
    const TensorInfo* info = Find(checkpoint, tensor.name);
    if (info != nullptr && info->spread == Spread::replicated)
      return Read(checkpoint, tensor.name, Element::float32, tensor.count, tensor.data);
    return ReadOfRank(checkpoint, tensor.name, source.rank(), Element::float32, 0, tensor.count,
                      tensor.data);
  }
  std::fill_n(tensor.data, tensor.count, 0.0f);
  // The tail is of the old padding; one rank had no errors; and not every rank holds some.
  if ((!worker && !server) || source.old_world() == 1 || tensor.count == 0) return {};
  engine::OnebitLayout from;
  BITRAIL_TRY(LayoutOf(saved, exchange, source.old_world(), &from));
  engine::OnebitLayout to;
  BITRAIL_TRY(LayoutOf(own, exchange, source.world(), &to));
  const checkpoint::ErrorSource errors = SourceOf(checkpoint, tensor.name);
  const auto chunk = static_cast<int>(exchange.errors->own_chunk);
  if (server) {
    return checkpoint::RespreadServer(
        from, to, chunk, checkpoint::ByChunk(from, saved.holders, errors), tensor.data);
  }
  const int voice = to.rails == 0 ? source.rank() : chunk % to.voices();
  return checkpoint::RespreadWorker(from, to, voice,
                                    checkpoint::ByVoice(from, saved.holders, errors), tensor.data,
                                    std::max(exchange.errors->rail, 0));
}

Status TakeTensors(const Source& source) {
  const Exchange* exchange = source.optimizer.method->compressed();
  ErrorForm saved;
  if (source.rule == Loaded::exact && exchange != nullptr && exchange->errors != nullptr)
    BITRAIL_TRY(ReadForm(source.checkpoint, &saved));
  for (const StateTensor& tensor : source.list.tensors) {
    if (tensor.error) {
      if (source.rule == Loaded::exact) BITRAIL_TRY(ReadErrors(source, saved, tensor));
      continue;
    }
    const bool own = Find(source.checkpoint, tensor.name)->spread == Spread::per_rank;
    BITRAIL_TRY(
        own ? ReadOfRank(source.checkpoint, tensor.name, source.stands_for(), Element::float32, 0,
                         tensor.count, tensor.data)
            : Read(source.checkpoint, tensor.name, Element::float32, tensor.count, tensor.data));
  }
  return {};
}

// Errors of another form belong to other sums: exact cannot be had.
Status CheckErrors(const Source& source) {
  const Exchange* exchange = source.optimizer.method->compressed();
  if (source.rule != Loaded::exact || exchange == nullptr || exchange->errors == nullptr) return {};
  const std::vector<int64_t> form = ErrorOptions(source.optimizer.options);
  for (size_t i = 0; i < form.size(); i++) {
    int64_t saved = -1;
    if (Get(source.checkpoint.manifest.scalars, kFormOf[i], &saved) && saved == form[i]) continue;
    return failure(BITRAIL_ERR_MISMATCH,
                   "checkpoint {}: the errors are of an exchange with {} {}, this one has {}: load "
                   "with BITRAIL_ERRORS_RESET, or make the optimizer as it was",
                   source.checkpoint.directory, kFormOf[i], saved, form[i]);
  }
  return {};
}

Status Check(const Source& source) {
  BITRAIL_TRY(CheckScalars(source));
  BITRAIL_TRY(CheckTensors(source));
  return CheckErrors(source);
}

void SayMasks(const Source& source) {
  int64_t saved = 0;
  if (!Get(source.checkpoint.manifest.scalars, "masks", &saved)) return;
  if (saved == MaskHash(source.optimizer.state) || source.rank() != 0) return;
  log::warn("checkpoint {}: its masks differ from this optimizer's, which count from now on",
            source.checkpoint.directory);
}

}  // namespace

Status SaveOptimizer(bitrail_optimizer& optimizer, const std::string& directory) {
  const Exchange* exchange = optimizer.method->compressed();
  ErrorPlace place;
  if (exchange != nullptr && exchange->errors != nullptr) place = PlaceOf(*exchange->errors);
  return checkpoint::Save(optimizer.comm, directory, Describe(optimizer, place));
}

Status LoadOptimizer(bitrail_optimizer& optimizer, const std::string& directory, Loaded rule) {
  Checkpoint opened;
  BITRAIL_TRY(checkpoint::Open(optimizer.comm, directory, &opened));
  BITRAIL_TRY(CheckModel(opened, optimizer.method->name(), ModelOf(optimizer.state)));
  int64_t frozen = 0;
  if (!Get(opened.manifest.scalars, "frozen", &frozen))
    return failure(BITRAIL_ERR_MISMATCH, "checkpoint {}: no value frozen", directory);
  const StateList list = ListState(optimizer, frozen != 0);
  const Source source{opened, list, optimizer, rule};
  std::vector<checkpoint::Words> all;
  BITRAIL_TRY(checkpoint::Agree(optimizer.comm, Check(source), {}, &all));
  SayMasks(source);
  TakeScalars(source);
  Status status = TakeTensors(source);
  if (status.ok()) status = StateLoaded(optimizer, opened.manifest.step, rule);
  return checkpoint::Agree(optimizer.comm, status, {}, &all);
}

}  // namespace bitrail::optimizers
