// The compressed exchange of an optimizer: which parameters share a scale, and one call for all.
//
//   per tensor  every segment is a unit of its own
//   per group   a group's segments, one after the other, are a unit
//   fused       all segments are one unit
//
// A unit has one worker scale a rank and one server scale a chunk. Segments of `non_freeze` groups
// take no part.
#pragma once

#include <memory>
#include <vector>

#include "optimizers/state.h"
#include "runtime/api/error_state.h"

namespace bitrail::optimizers {

struct ErrorStateDestroy {
  void operator()(bitrail_error_state_t errors) const { bitrail_error_state_destroy(errors); }
};

// What one exchange computes. produce is a pure function of state that consume alone changes, and
// consume is called once for each element, after all ranks agreed that everything is finite.
struct Pass {
  Pass() = default;
  virtual ~Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  // out[0..count) = elements [begin, begin + count) of the segment.
  virtual void produce(size_t segment, size_t begin, size_t count, float* out) = 0;
  virtual void consume(size_t segment, size_t begin, size_t count, const float* values) = 0;
};

struct Unit {
  std::vector<size_t> segments;
  std::vector<size_t> starts;  // of each segment in the unit
  size_t count = 0;            // elements, a kept tail included
};

struct Exchange {
  bitrail_comm_t comm = nullptr;  // borrowed
  int world = 1;
  std::vector<Unit> units;
  // Null with one rank, or without units.
  std::unique_ptr<bitrail_error_state, ErrorStateDestroy> errors;
  // DeepSpeed's fused LAMB: the padding of the one unit, whose last result enters again.
  std::vector<float> tail;
  bool keeps_tail = false;
  bool broken = false;  // a call failed half-way

  bool alone() const { return world == 1; }
  size_t bytes() const;
  Status reset_errors();
};

// `layout` is no default. `keep_tail`: the unit of a fused layout carries its padding.
Status MakeExchange(bitrail_comm_t comm, const Options& options, const State& state,
                    bitrail_layout_t layout, bool keep_tail, Exchange* exchange);

// Elements of the tail that a unit of `count` keeps with so many ranks.
size_t TailOf(size_t count, int ranks);

// One exchange. With one rank the values produced are the result. NOT_FINITE: refused on all ranks,
// nothing consumed. Another failure breaks the exchange: every later call says so.
Status Run(Exchange& exchange, const State& state, Pass& pass);

// Exchanges zeros and drops the result: DeepSpeed's init call.
Status RunZeros(Exchange& exchange);

// OK where `own` is OK on all ranks of comm (null: one rank): one small collective. Otherwise
// BITRAIL_ERR_NOT_FINITE on all ranks.
Status Agree(bitrail_comm_t comm, const Status& own);

// What the C API returned, with its text.
Status Checked(bitrail_status_t code);

}  // namespace bitrail::optimizers
