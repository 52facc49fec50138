// One kind of optimizer: what differs between Adam, LAMB and their 1-bit versions.
//
// A step either succeeds, or refuses with BITRAIL_ERR_NOT_FINITE on all ranks and has changed
// nothing, or fails and leaves the method broken.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizers/gradient.h"
#include "optimizers/state.h"
#include "optimizers/state_list.h"

namespace bitrail::optimizers {

struct Exchange;  // exchange.h

struct Method {
  Method() = default;
  virtual ~Method() = default;
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;

  virtual const char* name() const = 0;
  // The kind of gradient that the next step wants.
  virtual bitrail_gradient_t gradient() const { return BITRAIL_GRADIENT_MEAN; }
  virtual bool frozen() const { return false; }
  virtual int64_t frozen_at() const { return -1; }
  // DeepSpeed's first call with zero gradients: collective, changes nothing but the count.
  virtual bool has_init_call() const { return false; }
  virtual Status init_call() { return {}; }
  // Step number `step` (the init call counts).
  virtual Status step(State& state, const Gradient& gradient, int64_t step) = 0;
  // Whether now, after a step, the parameters are the same bits on all ranks.
  virtual bool replicas_equal() const { return true; }
  // Bytes beyond State's.
  virtual size_t bytes() const { return 0; }
  // Everything to keep but what State has. May make room for what is not there yet, so that a list
  // can be filled from outside: `frozen` says what the source was.
  virtual void list(State&, bool /*frozen*/, StateList*) {}
  // The list was filled with the state after step number `step`.
  virtual Status loaded(State&, int64_t /*step*/, Loaded) { return {}; }
  // The compressed exchange; null: the method has none.
  virtual const Exchange* compressed() const { return nullptr; }
  // Factors on lr of the last step, one a segment; null: the method has none.
  virtual const std::vector<double>* coefficients() const { return nullptr; }
};

}  // namespace bitrail::optimizers
