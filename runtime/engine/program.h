// A program: one rank's schedule, bound to counts and compiled flat for running.
//
// Everything that can be decided before a call is decided here: byte offsets, executors, message
// numbers, what waits for what, scratch. Running a program allocates nothing. Programs are
// immutable and shared by all runs of a call shape.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/common/status.h"
#include "runtime/schedule/schedule.h"

namespace bitrail::engine {

struct Run;
struct Step;

// Executes one computing step of a run on the calling thread. Failures are left in the run
// (Run::status, Run::refused).
using Executor = void (*)(Run& run, const Step& step);

// Bytes [offset, offset + bytes) of a buffer, holding elements [begin, end) of the whole symbol.
struct Span {
  uint32_t buffer = 0;
  uint32_t slot = 0;
  bool scratch = false;  // the buffer is
  uint64_t offset = 0, bytes = 0;
  uint64_t begin = 0, end = 0;
  uint64_t elements() const { return end - begin; }
};

enum class Act : uint8_t { compute, send, recv, nothing };

struct Step {
  Act act = Act::nothing;
  Executor execute = nullptr;                    // compute
  int peer = -1;                                 // send, recv
  uint32_t message = 0;                          // send, recv: low half of the tag
  uint32_t first_read = 0, reads = 0;            // into Program::spans
  uint32_t first_write = 0, writes = 0;          // into Program::spans
  uint32_t first_successor = 0, successors = 0;  // into Program::successors
  uint32_t waits = 0;                            // steps that must be done before
  int64_t attribute = 0;                         // the kind's first own parameter
  bool final_sum = false;  // reduce: nothing is added to these elements afterwards
};

struct Program {
  schedule::Schedule schedule;  // flat; kept for messages, traces and tests
  schedule::Binding binding;
  uint32_t signature = 0;  // equal on ranks that made the same call; travels as the cookie
  std::vector<Step> steps;
  std::vector<Span> spans;
  std::vector<uint32_t> successors;
  std::vector<uint32_t> initial_waits;  // Step::waits of all steps, to copy at each launch
  std::vector<uint32_t> initial;        // steps that wait for nothing: receives first, then by id
  std::vector<uint64_t> buffer_bytes;
  std::vector<uint32_t> inputs, outputs, scratches;  // buffers of these roles
  std::vector<uint64_t> scratch_offset;              // by buffer; only scratch buffers
  uint64_t scratch_bytes = 0;
  // Little scratch lives in the run, where nobody has to be asked for it.
  bool own_scratch() const { return scratch_bytes <= kOwnScratchBytes; }
  static constexpr uint64_t kOwnScratchBytes = 4096;
  std::vector<int> send_peers, recv_peers;
  uint64_t sent_bytes = 0;  // payload this rank puts on the wire

  const Span* read(const Step& step, uint32_t i) const { return &spans[step.first_read + i]; }
  const Span* write(const Step& step, uint32_t i) const { return &spans[step.first_write + i]; }
};

// Compiles. `signature` should cover what the schedule does not say: count, type, op. Fails on a
// kind that has no executor.
Status compile(const schedule::Schedule& schedule, const schedule::Binding& binding,
               uint32_t signature, Program* program);

}  // namespace bitrail::engine
