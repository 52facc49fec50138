// A run: one program in flight, with everything that changes while it runs.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/host/reduce.h"
#include "runtime/engine/program.h"
#include "runtime/transport/transport.h"

namespace bitrail::engine {

struct OnebitCall;  // onebit.h

// Messages a run has asked for or answered, by step.
struct Message {
  transport::Request request;
  Run* run = nullptr;
  uint32_t step = 0;
};

struct alignas(64) ScratchLine {
  std::byte bytes[64];
};

struct Run {
  const Program* program = nullptr;
  std::vector<std::byte*> base;                 // by buffer
  std::vector<ScratchLine> own_scratch;         // of programs that need little
  transport::Memory* scratch_memory = nullptr;  // registration of other scratch; null: none
  std::vector<uint32_t> waits;                  // by step, counts down
  std::vector<Message> messages;                // by step; only send and recv are used
  std::vector<uint32_t>
      ready;  // computing steps that may run: a min-heap, so the lowest id goes first
  std::vector<uint32_t> completed;  // messages that the transport finished since the last look
  std::vector<uint32_t> backlog;    // messages the transport had no room for
  std::vector<uint32_t> retry;      // the backlog while it is posted again
  std::vector<uint32_t> stack;      // finished steps whose successors are not told yet
  uint32_t left = 0;                // steps not finished
  uint32_t in_flight = 0;           // messages at the transport
  uint32_t sequence = 0;            // of the call on its communicator
  bool connected = false;
  bool refused = false;     // the verdict: not finite somewhere
  bool progressed = false;  // since the waiter last looked
  int64_t last_progress_ns = 0;
  Status status;  // first failure
  std::atomic<bool> done{true};

  // What the executors need beside the buffers.
  kernels::ReduceFunction reduce = nullptr;
  kernels::MultiplyFunction multiply = nullptr;  // final factor of an average, null for none
  double factor = 1;
  uint32_t element_bytes = 4;
  OnebitCall* onebit = nullptr;
  std::function<void(Run&)> on_done;  // called once by the thread that finishes the run; set-up and
                                      // traces, not the hot path

  std::byte* at(const Span& span) const { return base[span.buffer] + span.offset; }
};

// Where the program's scratch lies. Stays until the next call.
void bind_scratch(Run& run, std::byte* scratch);

// Makes `run` fit `program`: allocates what it needs. Reused for later calls without allocating.
void prepare(Run& run, const Program& program);

}  // namespace bitrail::engine
