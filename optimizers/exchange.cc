#include "optimizers/exchange.h"

#include <algorithm>
#include <numeric>

#include "optimizers/gradient.h"

namespace bitrail::optimizers {
namespace {

void Append(size_t segment, size_t count, Unit* unit) {
  unit->segments.push_back(segment);
  unit->starts.push_back(unit->count);
  unit->count += count;
}

void MakeUnits(const State& state, bitrail_layout_t layout, Exchange* exchange) {
  std::vector<size_t> unit_of_group(state.groups.size(), SIZE_MAX);
  for (size_t i = 0; i < state.segments.size(); i++) {
    const Segment& segment = state.segments[i];
    if (state.group(segment).non_freeze) continue;
    size_t unit = exchange->units.size();
    if (layout == BITRAIL_LAYOUT_PER_GROUP) unit = std::min(unit, unit_of_group[segment.group]);
    if (layout == BITRAIL_LAYOUT_FUSED) unit = 0;
    if (unit == exchange->units.size()) exchange->units.emplace_back();
    unit_of_group[segment.group] = unit;
    Append(i, segment.count, &exchange->units[unit]);
  }
}

Status MakeErrors(const Options& options, Exchange* exchange) {
  std::vector<size_t> counts;
  for (const Unit& unit : exchange->units) counts.push_back(unit.count);
  bitrail_onebit_layout_t layout = {};
  layout.struct_size = sizeof layout;
  layout.segments = counts.size();
  layout.counts = counts.data();
  layout.scale = options.c.scale;
  layout.norm = options.c.norm;
  layout.block = options.c.block;
  layout.padding = options.c.padding;
  bitrail_error_state_t errors = nullptr;
  BITRAIL_TRY(Checked(bitrail_error_state_create(&errors, exchange->comm, &layout)));
  exchange->errors.reset(errors);
  return {};
}

// Calls visit(segment index, begin in the segment, length, offset from `begin`) for what
// [begin, begin + count) of a unit holds; the tail is segment SIZE_MAX.
template <typename Visit>
void ForPieces(const Unit& unit, const std::vector<Segment>& segments, size_t begin, size_t count,
               Visit visit) {
  const auto after = std::upper_bound(unit.starts.begin(), unit.starts.end(), begin);
  size_t index = static_cast<size_t>(after - unit.starts.begin()) - 1;
  size_t at = begin;
  const size_t end = begin + count;
  for (; at < end && index < unit.segments.size(); index++) {
    const size_t local = at - unit.starts[index];
    const size_t size = segments[unit.segments[index]].count;
    if (local >= size) continue;
    const size_t length = std::min(size - local, end - at);
    visit(unit.segments[index], local, length, at - begin);
    at += length;
  }
  if (at < end) {
    const size_t tensors = unit.starts.back() + segments[unit.segments.back()].count;
    visit(SIZE_MAX, at - tensors, end - at, at - begin);
  }
}

// What producer and consumer see of a call.
struct Bound {
  Exchange* exchange;
  const State* state;
  Pass* pass;  // null: zeros
};

void Produce(void* user, size_t index, size_t begin, size_t count, float* out) {
  const Bound& bound = *static_cast<const Bound*>(user);
  if (bound.pass == nullptr) {
    std::fill_n(out, count, 0.0f);
    return;
  }
  ForPieces(bound.exchange->units[index], bound.state->segments, begin, count,
            [&](size_t segment, size_t from, size_t n, size_t offset) {
              if (segment == SIZE_MAX) {
                std::copy_n(bound.exchange->tail.data() + from, n, out + offset);
              } else {
                bound.pass->produce(segment, from, n, out + offset);
              }
            });
}

void Consume(void* user, size_t index, size_t begin, size_t count, const float* values) {
  const Bound& bound = *static_cast<const Bound*>(user);
  if (bound.pass == nullptr) return;
  ForPieces(bound.exchange->units[index], bound.state->segments, begin, count,
            [&](size_t segment, size_t from, size_t n, size_t offset) {
              if (segment == SIZE_MAX) {
                std::copy_n(values + offset, n, bound.exchange->tail.data() + from);
              } else {
                bound.pass->consume(segment, from, n, values + offset);
              }
            });
}

Status Perform(Exchange& exchange, Bound* bound) {
  if (exchange.errors == nullptr) return {};
  bitrail_onebit_call_t call = {};
  call.struct_size = sizeof call;
  call.type = BITRAIL_FLOAT32;
  call.produce = Produce;
  call.consume = Consume;
  call.user = bound;
  Status status = Checked(bitrail_onebit_allreduce(exchange.errors.get(), &call, nullptr));
  exchange.broken = exchange.errors->broken;
  return status;
}

// One rank: what it sends is the mean.
void Alone(const Exchange& exchange, const State& state, Pass& pass) {
  alignas(64) float tile[kTile];
  for (const Unit& unit : exchange.units) {
    for (const size_t index : unit.segments) {
      for (size_t begin = 0; begin < state.segments[index].count; begin += kTile) {
        const size_t n = std::min(kTile, state.segments[index].count - begin);
        pass.produce(index, begin, n, tile);
        pass.consume(index, begin, n, tile);
      }
    }
  }
}

}  // namespace

Status Checked(bitrail_status_t code) {
  if (code == BITRAIL_OK) return {};
  return {code, bitrail_last_error()};
}

size_t Exchange::bytes() const {
  const size_t floats = errors == nullptr ? 0 : errors->worker.size() + errors->server.size();
  return (floats + tail.size()) * sizeof(float);
}

size_t TailOf(size_t count, int ranks) {
  const auto world = static_cast<size_t>(ranks);
  const size_t quantum = std::max(world * std::lcm(world, size_t{8}), size_t{1});
  return (quantum - count % quantum) % quantum;
}

Status Exchange::reset_errors() {
  broken = false;
  std::fill(tail.begin(), tail.end(), 0.0f);
  if (errors == nullptr) return {};
  return Checked(bitrail_error_state_reset(errors.get()));
}

Status MakeExchange(bitrail_comm_t comm, const Options& options, const State& state,
                    bitrail_layout_t layout, bool keep_tail, Exchange* exchange) {
  exchange->comm = comm;
  exchange->world = bitrail_comm_world_size(comm);
  MakeUnits(state, layout, exchange);
  if (exchange->alone() || exchange->units.empty()) return {};
  if (keep_tail && exchange->units.size() == 1) {
    size_t& count = exchange->units[0].count;
    exchange->keeps_tail = true;
    exchange->tail.assign(TailOf(count, exchange->world), 0.0f);
    count += exchange->tail.size();
  }
  return MakeErrors(options, exchange);
}

Status Run(Exchange& exchange, const State& state, Pass& pass) {
  if (exchange.broken) {
    return failure(BITRAIL_ERR_BROKEN,
                   "rank {}: an earlier exchange of this optimizer failed half-way; load a "
                   "checkpoint",
                   bitrail_comm_rank(exchange.comm));
  }
  if (exchange.alone()) {
    Alone(exchange, state, pass);
    return {};
  }
  Bound bound{&exchange, &state, &pass};
  return Perform(exchange, &bound);
}

Status RunZeros(Exchange& exchange) {
  Bound bound{&exchange, nullptr, nullptr};
  return Perform(exchange, &bound);
}

Status Agree(bitrail_comm_t comm, const Status& own) {
  if (comm == nullptr || bitrail_comm_world_size(comm) == 1) return own;
  float bad = own.ok() ? 0 : 1;
  BITRAIL_TRY(
      Checked(bitrail_allreduce(comm, &bad, &bad, 1, BITRAIL_FLOAT32, BITRAIL_MAX, nullptr)));
  if (!own.ok() || bad == 0) return own;
  return failure(BITRAIL_ERR_NOT_FINITE,
                 "rank {}: another rank's gradient is not finite; this step is refused on all",
                 bitrail_comm_rank(comm));
}

}  // namespace bitrail::optimizers
