// The 1-bit collectives of the C API.
#include "runtime/api/call.h"
#include "runtime/api/error_state.h"
#include "runtime/api/result.h"

namespace bitrail::api {

void finish_onebit(bitrail_error_state* state, const Status& status) {
  state->busy = false;
  if (!status.ok() && status.code() != BITRAIL_ERR_NOT_FINITE) state->broken = true;
}

namespace {

using engine::OnebitMode;
using schedule::Collective;

constexpr Collective kCollectives[] = {
    Collective::onebit_allreduce, Collective::onebit_reduce_scatter, Collective::onebit_allgather};

Status check(const bitrail_error_state* state, const bitrail_onebit_call_t* call) {
  if (state == nullptr || call == nullptr)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT, "1-bit call: state or call is NULL");
  if (call->struct_size < sizeof(*call))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "bitrail_onebit_call_t.struct_size is {}, {} expected", call->struct_size,
                   sizeof(*call));
  if (call->type != BITRAIL_FLOAT32 && call->type != BITRAIL_FLOAT16 &&
      call->type != BITRAIL_BFLOAT16)
    return failure(BITRAIL_ERR_UNSUPPORTED, "1-bit call: type {} is not float32, float16, bfloat16",
                   static_cast<int>(call->type));
  if ((call->send == nullptr && call->produce == nullptr && state->layout.elements != 0) ||
      (call->recv == nullptr && call->consume == nullptr && state->layout.elements != 0))
    return Status(BITRAIL_ERR_INVALID_ARGUMENT,
                  "1-bit call: neither a buffer nor a producer or consumer is given");
  if (state->broken)
    return failure(BITRAIL_ERR_BROKEN,
                   "rank {}: this error state was in a call that failed half-way; reset it or load "
                   "a saved one",
                   state->comm->world.rank);
  if (state->busy)
    return Status(BITRAIL_ERR_INVALID_ARGUMENT,
                  "1-bit call: the error state is in use by a call in flight");
  return {};
}

Status find(bitrail_error_state* state, OnebitMode mode, bitrail_type_t type, Compiled** compiled) {
  std::unique_ptr<Compiled>& slot = state->programs[static_cast<int>(mode)][static_cast<int>(type)];
  if (slot == nullptr) {
    const engine::OnebitLayout& layout = state->layout;
    Shape shape;
    shape.collective = kCollectives[static_cast<int>(mode)];
    shape.type = type;
    shape.count = layout.padded();
    shape.block_scale = layout.block != 0;
    schedule::Binding binding;
    binding.counts = {layout.padded(), layout.scales() + 1};
    binding.data_bits = static_cast<uint32_t>(bitrail_type_size(type) * 8);
    // A piece begins on a byte of its bits and, for speed, where the vectors of its floats are
    // aligned.
    binding.quantum = layout.block != 0 ? layout.block : 8;
    binding.piece_quantum = layout.block != 0 ? layout.block : 512;
    binding.group = layout.block;
    uint64_t salt = (layout.l1 ? 1u : 2u) + (layout.tight ? 2u : 0u);
    for (const engine::Segment& segment : layout.segments)
      salt = (salt ^ segment.count) * 0x9E3779B97F4A7C15u;
    // The planner decided when the state was made; the halves are flat.
    const std::string algo =
        mode == OnebitMode::allreduce
            ? fmt::format("{}:{}", collective_name(shape.collective), state->algorithm->name)
            : state->comm->settings.algo;
    auto made = std::make_unique<Compiled>();
    BITRAIL_TRY(compile(state->comm, shape, binding, salt ^ layout.block, algo, made.get()));
    slot = std::move(made);
  }
  *compiled = slot.get();
  return {};
}

Status run(bitrail_error_state* state, OnebitMode mode, const bitrail_onebit_call_t* arguments,
           bitrail_request_t* request) {
  BITRAIL_TRY(check(state, arguments));
  if (mode != OnebitMode::allreduce) BITRAIL_TRY(flat_only(*state));
  bitrail_comm* comm = state->comm;
  if (state->layout.elements == 0) {
    // Nothing to exchange: as an empty tensor passes through, on all ranks alike.
    if (request == nullptr) return {};
    const bitrail_status_t code = bitrail_barrier(comm, request);
    if (code != BITRAIL_OK) return Status(code, bitrail_last_error());
    return {};
  }
  BITRAIL_TRY(comm->engine->failure_status());
  Compiled* compiled = nullptr;
  BITRAIL_TRY(find(state, mode, arguments->type, &compiled));
  engine::OnebitCall& onebit = state->call;
  onebit.layout = &state->layout;
  onebit.mode = mode;
  onebit.first_chunk = state->first_chunk;
  onebit.chunks = state->chunks;
  onebit.own_chunk = state->own_chunk;
  onebit.node_factor = static_cast<float>(static_cast<double>(state->layout.voices()) /
                                          static_cast<double>(comm->world.size));
  onebit.send = arguments->send;
  onebit.recv = arguments->recv;
  onebit.type = arguments->type;
  onebit.produce = arguments->produce;
  onebit.consume = arguments->consume;
  onebit.user = arguments->user;
  onebit.own_offset = state->own_offset;
  onebit.tile.resize(engine::kTile);
  Call call;
  Status begun = begin(comm, compiled, arguments->send, arguments->recv, &call);
  if (!begun.ok()) return end(&call, std::move(begun));
  const uint64_t elements =
      mode == OnebitMode::allgather ? state->own_elements : state->layout.elements;
  call.raw_bytes = elements * bitrail_type_size(arguments->type);
  call.state = state;
  state->busy = true;
  call.run->onebit = &onebit;
  call.run->on_done = state->observe;
  const std::vector<schedule::Buffer>& buffers = compiled->program.schedule.buffers;
  for (size_t i = 0; i < buffers.size(); i++) {
    if (buffers[i].role == schedule::Role::worker_error)
      call.run->base[i] = reinterpret_cast<std::byte*>(state->worker.data());
    if (buffers[i].role == schedule::Role::server_error)
      call.run->base[i] = reinterpret_cast<std::byte*>(state->server.data());
  }
  return perform(call, request);
}

}  // namespace
}  // namespace bitrail::api

using bitrail::api::guarded;
using bitrail::engine::OnebitMode;

extern "C" {

bitrail_status_t bitrail_onebit_allreduce(bitrail_error_state_t state,
                                          const bitrail_onebit_call_t* call,
                                          bitrail_request_t* request) {
  return guarded([&] { return bitrail::api::run(state, OnebitMode::allreduce, call, request); });
}

bitrail_status_t bitrail_onebit_reduce_scatter(bitrail_error_state_t state,
                                               const bitrail_onebit_call_t* call,
                                               bitrail_request_t* request) {
  return guarded(
      [&] { return bitrail::api::run(state, OnebitMode::reduce_scatter, call, request); });
}

bitrail_status_t bitrail_onebit_allgather(bitrail_error_state_t state,
                                          const bitrail_onebit_call_t* call,
                                          bitrail_request_t* request) {
  return guarded([&] { return bitrail::api::run(state, OnebitMode::allgather, call, request); });
}

}  // extern "C"
