#include "runtime/engine/program.h"

#include <algorithm>

#include "runtime/engine/executors.h"
#include "runtime/schedule/flatten.h"

namespace bitrail::engine {
namespace {

using schedule::Operation;
using schedule::Range;
using schedule::Schedule;

constexpr uint64_t kShortBytes = 256;
constexpr uint64_t kAlign = 64;  // of scratch buffers: a cache line and the widest vector

Span bind(const Program& program, const Range& range) {
  const schedule::Bounds elements =
      schedule::global_bounds(program.schedule, range, program.binding);
  const schedule::Bounds bytes = schedule::byte_bounds(program.schedule, range, program.binding);
  Span span;
  span.buffer = range.buffer;
  span.slot = range.slot;
  span.scratch = program.schedule.buffers[range.buffer].role == schedule::Role::scratch;
  span.begin = elements.begin;
  span.end = std::max(elements.begin, elements.end);
  span.offset = bytes.begin;
  span.bytes = bytes.empty() ? 0 : bytes.end - bytes.begin;
  return span;
}

void bind_all(Program* program, const std::vector<Range>& ranges, uint32_t* first,
              uint32_t* count) {
  *first = static_cast<uint32_t>(program->spans.size());
  *count = static_cast<uint32_t>(ranges.size());
  for (const Range& range : ranges) program->spans.push_back(bind(*program, range));
}

bool all_empty(const Program& program, const Step& step) {
  if (step.reads + step.writes == 0) return false;  // a message without data (barrier) is a message
  for (uint32_t i = 0; i < step.reads; i++)
    if (program.read(step, i)->bytes != 0) return false;
  for (uint32_t i = 0; i < step.writes; i++)
    if (program.write(step, i)->bytes != 0) return false;
  return true;
}

void note_peer(std::vector<int>* peers, int peer) {
  if (std::find(peers->begin(), peers->end(), peer) == peers->end()) peers->push_back(peer);
}

Status make_step(const Operation& operation, Program* program, Step* step) {
  bind_all(program, operation.reads, &step->first_read, &step->reads);
  bind_all(program, operation.writes, &step->first_write, &step->writes);
  step->peer = operation.peer;
  step->message = operation.message;
  if (!operation.attributes.empty()) step->attribute = operation.attributes[0];
  // Partial sums live in scratch; one that goes into the caller's buffer is the last of its
  // elements.
  if (operation.kind == &schedule::kReduce && !operation.writes.empty() &&
      program->schedule.buffers[operation.writes[0].buffer].role != schedule::Role::scratch)
    step->final_sum = true;
  // Both ends know the sizes, so a message that carries nothing is not sent at all.
  if (all_empty(*program, *step)) return {};
  if (operation.kind == &schedule::kSend || operation.kind == &schedule::kRecv) {
    const bool send = operation.kind == &schedule::kSend;
    if (operation.reads.size() + operation.writes.size() > 1)
      return failure(BITRAIL_ERR_INTERNAL, "schedule {}: a message has more than one range",
                     program->schedule.name);
    step->act = send ? Act::send : Act::recv;
    note_peer(send ? &program->send_peers : &program->recv_peers, operation.peer);
    if (send && step->reads > 0) program->sent_bytes += program->read(*step, 0)->bytes;
    return {};
  }
  step->act = Act::compute;
  step->execute = find_executor(operation.kind);
  if (step->execute == nullptr)
    return failure(BITRAIL_ERR_UNSUPPORTED, "schedule {}: nothing executes operation '{}' here",
                   program->schedule.name, operation.kind->name);
  return {};
}

// Edges, with one rule of the engine's own: nothing behind a verdict starts before it, so that a
// refused call has no receive outstanding that nobody will ever answer.
std::vector<std::vector<uint32_t>> edges(const Schedule& schedule) {
  std::vector<std::vector<uint32_t>> after(schedule.operations.size());
  uint32_t verdict = UINT32_MAX;
  for (uint32_t id = 0; id < schedule.operations.size(); id++) {
    const Operation& operation = schedule.operations[id];
    after[id].assign(operation.after.begin(), operation.after.end());
    if (operation.kind == &schedule::kVerdict) {
      verdict = id;
    } else if (verdict != UINT32_MAX) {
      after[id].push_back(verdict);
    }
    std::sort(after[id].begin(), after[id].end());
    after[id].erase(std::unique(after[id].begin(), after[id].end()), after[id].end());
  }
  return after;
}

void link_steps(Program* program) {
  const std::vector<std::vector<uint32_t>> after = edges(program->schedule);
  std::vector<std::vector<uint32_t>> before(after.size());
  for (uint32_t id = 0; id < after.size(); id++) {
    program->steps[id].waits = static_cast<uint32_t>(after[id].size());
    for (uint32_t earlier : after[id]) before[earlier].push_back(id);
  }
  for (uint32_t id = 0; id < before.size(); id++) {
    Step& step = program->steps[id];
    step.first_successor = static_cast<uint32_t>(program->successors.size());
    step.successors = static_cast<uint32_t>(before[id].size());
    program->successors.insert(program->successors.end(), before[id].begin(), before[id].end());
  }
  for (const Step& step : program->steps) program->initial_waits.push_back(step.waits);
  // Short messages leave first, since posting the receives takes no time while they fly; then the
  // receives, so that long ones find their place when they arrive.
  const auto turn = [program](const Step& step) {
    if (step.act == Act::recv) return 1;
    const bool send = step.act == Act::send && step.reads != 0;
    return send && program->read(step, 0)->bytes <= kShortBytes ? 0 : 2;
  };
  for (const int now : {0, 1, 2})
    for (uint32_t id = 0; id < program->steps.size(); id++)
      if (program->steps[id].waits == 0 && turn(program->steps[id]) == now)
        program->initial.push_back(id);
}

void place_buffers(Program* program) {
  const std::vector<schedule::Buffer>& buffers = program->schedule.buffers;
  for (uint32_t id = 0; id < buffers.size(); id++) {
    const schedule::Buffer& buffer = buffers[id];
    if (buffer.role == schedule::Role::input) program->inputs.push_back(id);
    if (buffer.role == schedule::Role::output) program->outputs.push_back(id);
    if (buffer.role == schedule::Role::scratch) program->scratches.push_back(id);
    const uint64_t bytes = schedule::buffer_bytes(buffer, program->binding);
    program->buffer_bytes.push_back(bytes);
    program->scratch_offset.push_back(program->scratch_bytes);
    if (buffer.role == schedule::Role::scratch)
      program->scratch_bytes += (bytes + kAlign - 1) / kAlign * kAlign;
  }
}

}  // namespace

Status compile(const Schedule& schedule, const schedule::Binding& binding, uint32_t signature,
               Program* program) {
  *program = Program();
  program->schedule = schedule::flatten(schedule);
  program->binding = binding;
  program->signature = signature;
  program->steps.resize(program->schedule.operations.size());
  for (size_t id = 0; id < program->steps.size(); id++)
    BITRAIL_TRY(make_step(program->schedule.operations[id], program, &program->steps[id]));
  link_steps(program);
  place_buffers(program);
  return {};
}

}  // namespace bitrail::engine
