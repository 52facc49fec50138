#include "runtime/engine/run.h"

namespace bitrail::engine {
namespace {

void message_done(transport::Request* request) {
  Message* message = static_cast<Message*>(request->user);
  message->run->completed.push_back(message->step);
}

}  // namespace

void bind_scratch(Run& run, std::byte* scratch) {
  for (const uint32_t id : run.program->scratches)
    run.base[id] = scratch + run.program->scratch_offset[id];
}

void prepare(Run& run, const Program& program) {
  if (run.program == &program) return;
  const size_t steps = program.steps.size();
  run.program = &program;
  run.base.assign(program.schedule.buffers.size(), nullptr);
  run.own_scratch.clear();
  if (program.own_scratch()) {
    run.own_scratch.resize((program.scratch_bytes + sizeof(ScratchLine) - 1) / sizeof(ScratchLine));
    bind_scratch(run, reinterpret_cast<std::byte*>(run.own_scratch.data()));
  }
  run.waits.assign(steps, 0);
  run.messages = std::vector<Message>(steps);
  for (std::vector<uint32_t>* list :
       {&run.ready, &run.completed, &run.backlog, &run.retry, &run.stack}) {
    list->clear();
    list->reserve(steps + 1);
  }
  for (uint32_t id = 0; id < steps; id++) {
    Message& message = run.messages[id];
    message.run = &run;
    message.step = id;
    message.request.on_done = message_done;
    message.request.user = &message;
  }
}

}  // namespace bitrail::engine
