// Running programs: what is ready is posted or computed, what is complete releases its successors.
#include <algorithm>

#include "runtime/engine/engine.h"

namespace bitrail::engine {
namespace {

constexpr uint32_t kAcceptEvery =
    1024;  // rounds between looks for connections that nobody asked for

// 64-bit tag of a collective's message: the call's number on its communicator, and the message's in
// the schedule.
uint64_t tag_of(uint32_t sequence, uint32_t message) {
  return (static_cast<uint64_t>(sequence) << 32) | message;
}

}  // namespace

Status Engine::start_run(Run* run) {
  BITRAIL_TRY(failure_status());
  const Program& program = *run->program;
  run->sequence = sequence_++;
  std::copy(program.initial_waits.begin(), program.initial_waits.end(), run->waits.begin());
  run->ready.clear();
  run->completed.clear();
  run->backlog.clear();
  run->left = static_cast<uint32_t>(program.steps.size());
  run->in_flight = 0;
  run->refused = false;
  run->status = Status();
  run->progressed = true;
  run->done.store(false, std::memory_order_relaxed);
  runs_.push_back(run);
  if (!run->connected) {
    const Deadline deadline = Deadline::in_ms(timeout_ms_);
    for (int peer : program.send_peers) mesh_.want(peer, deadline);
  }
  int events = 0;
  if (run->connected || connect(run, &events)) post_initial(run);
  return {};
}

bool Engine::connect(Run* run, int* events) {
  const Status status = mesh_.poll(events);
  if (!status.ok()) {
    fail({-1, status.code(), status.text()}, /*tell=*/true);
    return false;
  }
  for (int peer : run->program->send_peers)
    if (!mesh_.can_send(peer)) return false;
  for (int peer : run->program->recv_peers)
    if (!mesh_.can_recv(peer)) return false;
  run->connected = true;
  return true;
}

void Engine::post_initial(Run* run) {
  const Program& program = *run->program;
  if (program.steps.empty()) end_run(run);
  for (uint32_t id : program.initial) {
    switch (program.steps[id].act) {
      case Act::compute:
        run->ready.push_back(id);  // ascending: already a heap
        break;
      case Act::nothing:
        step_done(run, id);
        break;
      case Act::send:
      case Act::recv:
        post(run, id);
        break;
    }
    if (failed_) return;
  }
  if (run->ready.size() > 1) std::make_heap(run->ready.begin(), run->ready.end(), std::greater<>());
}

void Engine::post(Run* run, uint32_t id) {
  const Program& program = *run->program;
  const Step& step = program.steps[id];
  transport::Request& request = run->messages[id].request;
  const uint64_t tag = tag_of(run->sequence, step.message);
  bool accepted = false;
  Status status;
  if (step.act == Act::send) {
    const Span none;
    const Span& span = step.reads != 0 ? *program.read(step, 0) : none;
    const void* data = step.reads != 0 ? run->at(span) : nullptr;
    status = mesh_.sender(step.peer)->isend(data, span.bytes, tag, program.signature,
                                            span.scratch ? run->scratch_memory : nullptr, &request,
                                            &accepted);
    if (accepted) {
      totals_.sent_bytes.add(span.bytes);
      totals_.messages.add(1);
    }
  } else {
    transport::Buffer buffer;
    buffer.tag = tag;
    if (step.writes != 0) {
      const Span& span = *program.write(step, 0);
      buffer.data = run->at(span);
      buffer.bytes = span.bytes;
      if (span.scratch) buffer.memory = run->scratch_memory;
    }
    status = mesh_.receiver(step.peer)->irecv(1, &buffer, &request, &accepted);
  }
  if (!status.ok()) {
    fail({step.peer, status.code(),
          fmt::format("rank {}, {} with rank {}: {}", rank_, program.schedule.name, step.peer,
                      status.text())},
         /*tell=*/true);
  } else if (accepted) {
    run->in_flight++;
  } else {
    run->backlog.push_back(id);
  }
}

void Engine::step_done(Run* run, uint32_t id) {
  const Program& program = *run->program;
  run->stack.clear();
  run->stack.push_back(id);
  while (!run->stack.empty()) {
    const Step& step = program.steps[run->stack.back()];
    run->stack.pop_back();
    run->left--;
    if (run->refused || !run->status.ok()) continue;  // nothing new starts in a run that ends
    for (uint32_t i = 0; i < step.successors; i++) {
      const uint32_t next = program.successors[step.first_successor + i];
      if (--run->waits[next] != 0) continue;
      switch (program.steps[next].act) {
        case Act::compute:
          run->ready.push_back(next);
          if (run->ready.size() > 1)
            std::push_heap(run->ready.begin(), run->ready.end(), std::greater<>());
          break;
        case Act::nothing:
          run->stack.push_back(next);
          break;
        case Act::send:
        case Act::recv:
          post(run, next);
          break;
      }
    }
  }
}

void Engine::fail_mismatch(const Run* run, int peer, const std::string& detail) {
  fail({peer, BITRAIL_ERR_MISMATCH,
        fmt::format("rank {} and rank {} disagree about call {} ({} here): the collective, count, "
                    "type, operation or algorithm differs; {}",
                    rank_, peer, run->sequence, run->program->schedule.name, detail)},
       /*tell=*/true);
}

void Engine::take_completed(Run* run, uint32_t id) {
  const Program& program = *run->program;
  const Step& step = program.steps[id];
  const transport::Request& request = run->messages[id].request;
  run->in_flight--;
  run->progressed = true;
  if (request.status == BITRAIL_ERR_MISMATCH) {  // longer than its receive
    fail_mismatch(run, step.peer, request.text);
    return;
  }
  if (request.status != BITRAIL_OK) {
    fail({step.peer, request.status,
          fmt::format("rank {}, {}, message {} rank {}: {}", rank_, program.schedule.name,
                      step.act == Act::send ? "to" : "from", step.peer, request.text)},
         /*tell=*/true);
    return;
  }
  if (step.act == Act::recv) {
    const size_t expected = step.writes != 0 ? program.write(step, 0)->bytes : 0;
    if (request.cookie != program.signature || request.received[0] != expected) {
      fail_mismatch(run, step.peer,
                    fmt::format("{} bytes came, {} were expected", request.received[0], expected));
      return;
    }
    totals_.received_bytes.add(expected);
  }
  step_done(run, id);
}

int Engine::advance(Run* run) {
  int events = 0;
  if (!run->connected) {
    if (!connect(run, &events)) return events;
    post_initial(run);
    if (failed_) return 1;
  }
  while (!run->completed.empty()) {
    const uint32_t id = run->completed.back();
    run->completed.pop_back();
    take_completed(run, id);
    if (failed_) return 1;
    events++;
  }
  if (!run->backlog.empty()) {
    run->retry.swap(run->backlog);
    run->backlog.clear();
    for (uint32_t id : run->retry) {
      post(run, id);
      if (failed_) return 1;
    }
    run->retry.clear();
  }
  const bool ending = run->refused || !run->status.ok();
  if (!ending && !run->ready.empty()) {
    if (run->ready.size() > 1)
      std::pop_heap(run->ready.begin(), run->ready.end(), std::greater<>());
    const uint32_t id = run->ready.back();
    run->ready.pop_back();
    const Step& step = run->program->steps[id];
    step.execute(*run, step);
    run->progressed = true;
    step_done(run, id);
    if (failed_) return 1;
    events++;
  }
  if (run->left == 0 ||
      ((run->refused || !run->status.ok()) && run->in_flight == 0 && run->backlog.empty())) {
    if (!run->status.ok()) {  // an executor saw bytes that make no sense: the job cannot go on
      fail({-1, run->status.code(),
            fmt::format("rank {}, {}: {}", rank_, run->program->schedule.name, run->status.text())},
           /*tell=*/true);
      return 1;
    }
    if (run->refused)
      run->status = failure(
          BITRAIL_ERR_NOT_FINITE,
          "{}: NaN or Inf in the data of at least one rank; nothing was changed on any rank",
          run->program->schedule.name);
    end_run(run);
    events++;
  }
  return events;
}

void Engine::end_run(Run* run) {
  runs_.erase(std::remove(runs_.begin(), runs_.end(), run), runs_.end());
  if (run->refused) {
    totals_.refused.add(1);
  } else if (!run->status.ok()) {
    totals_.failures.add(1);
  } else {
    totals_.calls.add(1);
  }
  if (run->on_done) run->on_done(*run);
  run->done.store(true, std::memory_order_release);
}

int Engine::drive() {
  if (failed_.load(std::memory_order_relaxed)) return 0;
  int events = context_->progress();
  const bool connecting = mesh_.connecting() || point_mesh_.connecting();
  if (connecting || polls_++ % kAcceptEvery == 0) {
    for (Mesh* mesh : {&mesh_, &point_mesh_}) {
      const Status status = mesh->poll(&events);
      if (!status.ok()) {
        fail({-1, status.code(), status.text()}, /*tell=*/true);
        return 1;
      }
    }
  }
  for (size_t i = 0; i < runs_.size() && !failed_; i++) {
    Run* run = runs_[i];
    events += advance(run);
    if (i < runs_.size() && runs_[i] != run) i--;  // it ended: the next one moved here
  }
  for (size_t i = 0; i < transfers_.size() && !failed_; i++) {
    Transfer* transfer = transfers_[i];
    events += advance(transfer);
    if (i < transfers_.size() && transfers_[i] != transfer) i--;
  }
  return events;
}

}  // namespace bitrail::engine
