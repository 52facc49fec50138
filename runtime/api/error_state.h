// What a bitrail_error_state_t is: the residues of a 1-bit call of one layout, and the programs for
// it.
//
// Its form follows from the algorithm that the allreduce of the layout has when it is made, which
// is the same on all ranks (engine/onebit.h): flat, or on rails, where ranks that do not code hold
// nothing. Worker errors lie chunk by chunk (the first coded chunk of every segment, then the next,
// ...), server errors are the own chunk.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/api/comm.h"
#include "runtime/engine/onebit.h"

struct bitrail_error_state {
  bitrail_comm* comm = nullptr;
  bitrail::engine::OnebitLayout layout;
  std::vector<uint64_t>
      own_offset;  // by segment: first element of the own part in a chunk-only buffer
  uint64_t own_elements = 0;
  const bitrail::planner::Algorithm* algorithm = nullptr;  // of the allreduce
  int rail = -1;                                           // on rails: the own one; -1: none
  // The chunks that this rank codes, and the one it averages.
  uint64_t first_chunk = 0, chunks = 0, own_chunk = 0;
  std::vector<float> worker;  // chunks x C
  std::vector<float> server;  // C
  bool broken = false;        // a call failed half-way: only reset mends it
  bool busy = false;          // a call is in flight
  // By mode and type; made at first use.
  std::unique_ptr<bitrail::api::Compiled> programs[3][3];
  bitrail::engine::OnebitCall call;
  // For tests and traces: sees each finished run with its buffers still bound.
  std::function<void(bitrail::engine::Run&)> observe;
};

namespace bitrail::api {

// Ends a call on `state`: everything but success and refusal leaves it broken.
void finish_onebit(bitrail_error_state* state, const Status& status);
// OK for states of the flat form; reduce-scatter, all-gather and ranks' chunks exist there only.
Status flat_only(const bitrail_error_state& state);

}  // namespace bitrail::api
