#include "runtime/api/call.h"

#include "runtime/api/error_state.h"
#include "runtime/api/result.h"

namespace bitrail::api {

engine::Run* Compiled::take() {
  if (free.empty()) {
    auto run = std::make_unique<engine::Run>();
    engine::prepare(*run, program);
    free.reserve(all.size() + 1);
    free.push_back(run.get());
    all.push_back(std::move(run));
  }
  engine::Run* run = free.back();
  free.pop_back();
  return run;
}

Status begin(bitrail_comm* comm, Compiled* compiled, const void* send, void* recv, Call* call) {
  call->comm = comm;
  call->compiled = compiled;
  const engine::Program& program = compiled->program;
  if (!program.own_scratch()) {
    call->scratch = comm->engine->scratch().take(program.scratch_bytes);
    if (call->scratch.data == nullptr)
      return failure(BITRAIL_ERR_NO_MEMORY, "rank {}: no {} bytes of scratch for {}",
                     comm->world.rank, program.scratch_bytes, program.schedule.name);
    comm->engine->register_scratch(&call->scratch);
  }
  call->run = compiled->take();
  if (call->scratch.data != nullptr) engine::bind_scratch(*call->run, call->scratch.data);
  call->run->scratch_memory = call->scratch.memory.get();
  for (const uint32_t id : program.inputs)  // read only, as the schedule says
    call->run->base[id] = static_cast<std::byte*>(const_cast<void*>(send));
  for (const uint32_t id : program.outputs) call->run->base[id] = static_cast<std::byte*>(recv);
  return {};
}

Status end(Call* call, Status status) {
  if (call->run != nullptr) call->compiled->give(call->run);
  if (call->scratch.data != nullptr) call->comm->engine->scratch().give(std::move(call->scratch));
  if (status.ok()) call->comm->engine->totals().raw_bytes.add(call->raw_bytes);
  if (call->state != nullptr) finish_onebit(call->state, status);
  return status;
}

Status perform(Call& call, bitrail_request_t* request) {
  engine::Engine& engine = *call.comm->engine;
  if (request == nullptr) {
    Status status = engine.execute(call.run);
    return end(&call, std::move(status));
  }
  *request = nullptr;
  auto made = std::make_unique<bitrail_request>();
  Status status = engine.launch(call.run);
  if (!status.ok()) return end(&call, std::move(status));
  made->comm = call.comm;
  made->call = call;
  *request = made.release();
  return {};
}

namespace {

Status complete(bitrail_request_t* request) {
  const std::unique_ptr<bitrail_request> owned(*request);
  *request = nullptr;
  engine::Engine& engine = *owned->comm->engine;
  if (owned->transfer != nullptr) {
    Status status = engine.finish(owned->transfer.get());
    if (status.ok() && owned->received != nullptr)
      *owned->received = owned->transfer->request.received[0];
    return status;
  }
  Status status = engine.finish(owned->call.run);
  return end(&owned->call, std::move(status));
}

}  // namespace
}  // namespace bitrail::api

extern "C" {

bitrail_status_t bitrail_test(bitrail_request_t* request) {
  return bitrail::api::guarded([&]() -> bitrail::Status {
    if (request == nullptr || *request == nullptr)
      return bitrail::Status(BITRAIL_ERR_INVALID_ARGUMENT, "request is NULL");
    const bool done = (*request)->transfer != nullptr
                          ? (*request)->transfer->done.load(std::memory_order_acquire)
                          : (*request)->call.run->done.load(std::memory_order_acquire);
    if (!done) return bitrail::Status(BITRAIL_IN_PROGRESS, "");
    return bitrail::api::complete(request);
  });
}

bitrail_status_t bitrail_wait(bitrail_request_t* request) {
  return bitrail::api::guarded([&]() -> bitrail::Status {
    if (request == nullptr || *request == nullptr)
      return bitrail::Status(BITRAIL_ERR_INVALID_ARGUMENT, "request is NULL");
    return bitrail::api::complete(request);
  });
}

}  // extern "C"
