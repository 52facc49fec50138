#include "optimizers/error_form.h"

#include <numeric>

namespace bitrail::optimizers {
namespace {

constexpr const char* kName = "error_form";
constexpr uint64_t kValues = 3;
static_assert(sizeof(ErrorPlace) == kValues * sizeof(int64_t));

Status Contradiction(const checkpoint::Checkpoint& checkpoint, int rank) {
  return failure(BITRAIL_ERR_MISMATCH,
                 "checkpoint {}: rank {}'s {} does not fit the others': load with "
                 "BITRAIL_ERRORS_RESET",
                 checkpoint.directory, rank, kName);
}

}  // namespace

ErrorForm FormOf(const bitrail_error_state& errors) {
  ErrorForm form;
  form.rails = errors.layout.rails;
  form.holders.resize(static_cast<size_t>(errors.layout.world_size));
  if (form.rails == 0) {
    std::iota(form.holders.begin(), form.holders.end(), 0);
    return form;
  }
  const topology::Placement& placement = errors.comm->placement;
  size_t chunk = 0;
  for (size_t rail = 0; rail < static_cast<size_t>(form.rails); rail++)
    for (int node = 0; node < placement.nodes(); node++)
      form.holders[chunk++] = placement.ranks_of(node)[rail];
  return form;
}

ErrorPlace PlaceOf(const bitrail_error_state& errors) {
  ErrorPlace place;
  place.rails = errors.layout.rails;
  place.chunks = errors.layout.world_size;
  if (errors.chunks != 0) place.own_chunk = static_cast<int64_t>(errors.own_chunk);
  return place;
}

checkpoint::Tensor TensorOf(const ErrorPlace& place) {
  return {kName, checkpoint::Element::int64, checkpoint::Spread::per_rank, {kValues}, &place};
}

Status ReadForm(checkpoint::Checkpoint& checkpoint, ErrorForm* form) {
  const int world = checkpoint.manifest.world_size;
  *form = ErrorForm();
  if (Find(checkpoint, kName) == nullptr) {
    form->holders.resize(static_cast<size_t>(world));
    std::iota(form->holders.begin(), form->holders.end(), 0);
    return {};
  }
  ErrorPlace first;
  int held = 0;
  for (int rank = 0; rank < world; rank++) {
    ErrorPlace place;
    BITRAIL_TRY(
        ReadOfRank(checkpoint, kName, rank, checkpoint::Element::int64, 0, kValues, &place));
    if (rank == 0) {
      first = place;
      const bool good = place.rails > 0 && place.chunks > 0 && place.chunks <= world &&
                        place.chunks % place.rails == 0;
      if (!good) return Contradiction(checkpoint, rank);
      form->rails = static_cast<int>(place.rails);
      form->holders.assign(static_cast<size_t>(place.chunks), -1);
    }
    if (place.rails != first.rails || place.chunks != first.chunks || place.own_chunk < -1 ||
        place.own_chunk >= first.chunks)
      return Contradiction(checkpoint, rank);
    if (place.own_chunk < 0) continue;
    int& holder = form->holders[static_cast<size_t>(place.own_chunk)];
    if (holder >= 0) return Contradiction(checkpoint, rank);
    holder = rank;
    held++;
  }
  if (held != first.chunks) return Contradiction(checkpoint, 0);
  return {};
}

Status LayoutOf(const ErrorForm& form, const Exchange& exchange, int world,
                engine::OnebitLayout* layout) {
  const engine::OnebitLayout& own = exchange.errors->layout;
  std::vector<uint64_t> tensors, counts;
  for (const Unit& unit : exchange.units) {
    tensors.push_back(unit.count - (unit.count == 0 ? 0 : exchange.tail.size()));
    counts.push_back(tensors.back() + (exchange.keeps_tail ? TailOf(tensors.back(), world) : 0));
  }
  BITRAIL_TRY(engine::make_layout(static_cast<int>(form.holders.size()), counts, own.block, own.l1,
                                  layout, own.tight));
  layout->rails = form.rails;
  for (size_t i = 0; i < tensors.size(); i++) layout->segments[i].count = tensors[i];
  return {};
}

}  // namespace bitrail::optimizers
