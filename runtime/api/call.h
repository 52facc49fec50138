// One collective call from its arguments to its end, synchronous or behind a request.
#pragma once

#include <memory>

#include "runtime/api/comm.h"

struct bitrail_error_state;

namespace bitrail::api {

// A call in flight: what it holds until it ends.
struct Call {
  bitrail_comm* comm = nullptr;
  Compiled* compiled = nullptr;
  engine::Run* run = nullptr;
  engine::Scratch::Block scratch;
  bitrail_error_state* state = nullptr;  // 1-bit calls
  uint64_t raw_bytes = 0;
};

// Takes a run and scratch and binds the buffers that every call has.
Status begin(bitrail_comm* comm, Compiled* compiled, const void* send, void* recv, Call* call);
// Starts it and, without `request`, completes it; with one, hands it over.
Status perform(Call& call, bitrail_request_t* request);
// Gives back what the call holds; returns its status.
Status end(Call* call, Status status);

}  // namespace bitrail::api

struct bitrail_request {
  bitrail::api::Call call;                              // a collective, or
  std::unique_ptr<bitrail::engine::Transfer> transfer;  // a message
  bitrail_comm* comm = nullptr;
  size_t* received = nullptr;
};
