// What a bitrail_error_state_t is: the residues of a 1-bit call of one layout, and the programs for
// it.
//
// Worker errors lie chunk by chunk (chunk 0 of every segment, then chunk 1, ...), server errors are
// the own chunk.
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
  std::vector<float> worker;  // W x C
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

}  // namespace bitrail::api
