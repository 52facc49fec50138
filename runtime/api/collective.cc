// The exact collectives of the C API: check, find or compile the program, run it.
#include <cstring>

#include "runtime/api/call.h"
#include "runtime/api/result.h"

namespace bitrail::api {
namespace {

using schedule::Collective;

constexpr size_t kPrograms = 128;  // compiled programs kept; past that the idle ones go
constexpr uint64_t kMaxElements = uint64_t{1} << 48;
constexpr uint64_t kAlignFrom = 4096;  // elements: from here chunks and pieces begin on cache lines

bool is_float(bitrail_type_t type) {
  return type == BITRAIL_FLOAT32 || type == BITRAIL_FLOAT16 || type == BITRAIL_BFLOAT16 ||
         type == BITRAIL_FLOAT64;
}

bool reduces(Collective collective) {
  return collective == Collective::allreduce || collective == Collective::reduce_scatter;
}

struct Arguments {
  Shape shape;
  const void* send = nullptr;
  void* recv = nullptr;
  uint64_t send_bytes = 0, recv_bytes = 0;
};

Status check_shape(const bitrail_comm* comm, const Shape& shape) {
  const char* name = schedule::collective_name(shape.collective);
  if (bitrail_type_size(shape.type) == 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: there is no type {}", name,
                   static_cast<int>(shape.type));
  if (shape.count > kMaxElements)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: count {} is above {}", name, shape.count,
                   kMaxElements);
  if (shape.root < 0 || shape.root >= comm->world.size)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: root {} is not a rank of 0..{}", name,
                   shape.root, comm->world.size - 1);
  if (reduces(shape.collective)) {
    if (shape.op < BITRAIL_SUM || shape.op > BITRAIL_AVG)
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: there is no operation {}", name,
                     static_cast<int>(shape.op));
    if (shape.op == BITRAIL_AVG && !is_float(shape.type))
      return failure(BITRAIL_ERR_UNSUPPORTED, "{}: an average of integers is not an integer", name);
  }
  return {};
}

Status check_buffers(const Arguments& arguments) {
  const Shape& shape = arguments.shape;
  if ((arguments.send_bytes != 0 && arguments.send == nullptr) ||
      (arguments.recv_bytes != 0 && arguments.recv == nullptr))
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: a buffer is NULL",
                   schedule::collective_name(shape.collective));
  const auto* send = static_cast<const std::byte*>(arguments.send);
  const auto* recv = static_cast<const std::byte*>(arguments.recv);
  if (!shape.in_place && arguments.send_bytes != 0 && arguments.recv_bytes != 0 &&
      send < recv + arguments.recv_bytes && recv < send + arguments.send_bytes)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{}: send and recv overlap, which is not in place",
                   schedule::collective_name(shape.collective));
  return {};
}

// Chunks of calls that give every rank a part are that part; the others may be cut where it is
// fast.
schedule::Binding cut(const Shape& shape) {
  schedule::Binding binding;
  binding.counts = {shape.count, 0};
  const uint64_t size = bitrail_type_size(shape.type);
  binding.data_bits = static_cast<uint32_t>(size * 8);
  const uint64_t line = shape.count >= kAlignFrom ? 64 / size : 1;
  const bool free_chunks =
      shape.collective == Collective::allreduce || shape.collective == Collective::broadcast;
  binding.quantum = free_chunks ? line : 1;
  binding.piece_quantum = line;
  return binding;
}

bool repeated(const bitrail_comm* comm, const Shape& shape) {
  return comm->last_compiled != nullptr && comm->last_shape == shape;
}

Status find(bitrail_comm* comm, const Shape& shape, Compiled** compiled) {
  auto found = comm->programs.find(shape);
  if (found == comm->programs.end()) {
    if (comm->programs.size() >= kPrograms) {
      comm->last_compiled = nullptr;
      std::erase_if(comm->programs, [](const auto& entry) { return entry.second->idle(); });
    }
    auto made = std::make_unique<Compiled>();
    BITRAIL_TRY(compile(comm, shape, cut(shape), 0, comm->settings.algo, made.get()));
    made->element_bytes = static_cast<uint32_t>(bitrail_type_size(shape.type));
    if (reduces(shape.collective)) {
      const auto type = static_cast<kernels::Type>(shape.type);
      const bool average = shape.op == BITRAIL_AVG;
      made->reduce = kernels::FindReduce(
          type, average ? kernels::Op::sum : static_cast<kernels::Op>(shape.op));
      made->multiply = average ? kernels::FindMultiply(type) : nullptr;
    }
    found = comm->programs.emplace(shape, std::move(made)).first;
  }
  comm->last_shape = shape;
  comm->last_compiled = found->second.get();
  *compiled = comm->last_compiled;
  return {};
}

Status run(bitrail_comm* comm, const Arguments& arguments, bitrail_request_t* request) {
  if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
  const Shape& shape = arguments.shape;
  Compiled* compiled = nullptr;
  const bool known = repeated(comm, shape);  // then it was checked, too
  if (!known) BITRAIL_TRY(check_shape(comm, shape));
  BITRAIL_TRY(check_buffers(arguments));
  BITRAIL_TRY(comm->engine->failure_status());
  if (known) {
    compiled = comm->last_compiled;
  } else {
    BITRAIL_TRY(find(comm, shape, &compiled));
  }
  Call call;
  Status begun = begin(comm, compiled, arguments.send, arguments.recv, &call);
  if (!begun.ok()) return end(&call, std::move(begun));
  call.raw_bytes = arguments.send_bytes;
  engine::Run& r = *call.run;
  r.element_bytes = compiled->element_bytes;
  r.reduce = compiled->reduce;
  r.multiply = compiled->multiply;
  r.factor = 1.0 / comm->world.size;
  return perform(call, request);
}

const std::byte* offset(const void* data, uint64_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

Arguments allreduce(const void* send, void* recv, size_t count, bitrail_type_t type,
                    bitrail_op_t op, bool deterministic) {
  Arguments a;
  a.shape = {.collective = Collective::allreduce,
             .type = type,
             .op = op,
             .in_place = send == recv,
             .deterministic = deterministic,
             .block_scale = false,
             .root = 0,
             .count = count};
  a.send = send;
  a.recv = recv;
  a.send_bytes = a.recv_bytes = count * bitrail_type_size(type);
  return a;
}

}  // namespace

Status compile(bitrail_comm* comm, const Shape& shape, const schedule::Binding& binding,
               uint64_t salt, const std::string& algo, Compiled* compiled) {
  planner::Request request;
  request.collective = shape.collective;
  request.world_size = comm->world.size;
  request.rank = comm->world.rank;
  request.root = shape.root;
  request.count = shape.count;
  request.bytes = shape.count * bitrail_type_size(shape.type);
  request.in_place = shape.in_place;
  request.deterministic = shape.deterministic;
  request.block_scale = shape.block_scale;
  request.placement = &comm->placement;
  planner::Choice choice;
  BITRAIL_TRY(planner::choose(request, algo, comm->settings.piece, &choice));
  // In place or not is a rank's own affair and stays out of the signature.
  uint64_t signature = 0xcbf29ce484222325u;
  const auto mix = [&signature](uint64_t value) {
    signature = (signature ^ value) * 0x100000001b3u;
    signature ^= signature >> 29;
  };
  for (uint64_t value :
       {static_cast<uint64_t>(shape.collective), static_cast<uint64_t>(shape.type),
        static_cast<uint64_t>(shape.op), static_cast<uint64_t>(shape.root), shape.count, salt,
        static_cast<uint64_t>(choice.request.pieces), static_cast<uint64_t>(shape.deterministic)})
    mix(value);
  for (char c : choice.algorithm->name) mix(static_cast<unsigned char>(c));
  const schedule::Schedule schedule = choice.algorithm->build(choice.request);
  return engine::compile(schedule, binding, static_cast<uint32_t>(signature ^ (signature >> 32)),
                         &compiled->program);
}

}  // namespace bitrail::api

using bitrail::Status;
using bitrail::api::Arguments;
using bitrail::api::Collective;
using bitrail::api::guarded;

extern "C" {

bitrail_status_t bitrail_allreduce(bitrail_comm_t comm, const void* send, void* recv, size_t count,
                                   bitrail_type_t type, bitrail_op_t op,
                                   bitrail_request_t* request) {
  return guarded([&] {
    return bitrail::api::run(comm, bitrail::api::allreduce(send, recv, count, type, op, false),
                             request);
  });
}

bitrail_status_t bitrail_allreduce_deterministic(bitrail_comm_t comm, const void* send, void* recv,
                                                 size_t count, bitrail_type_t type, bitrail_op_t op,
                                                 bitrail_request_t* request) {
  return guarded([&] {
    return bitrail::api::run(comm, bitrail::api::allreduce(send, recv, count, type, op, true),
                             request);
  });
}

bitrail_status_t bitrail_reduce_scatter(bitrail_comm_t comm, const void* send, void* recv,
                                        size_t recv_count, bitrail_type_t type, bitrail_op_t op,
                                        bitrail_request_t* request) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    const uint64_t part = recv_count * bitrail_type_size(type);
    const auto world = static_cast<uint64_t>(comm->world.size);
    Arguments a;
    a.shape.collective = Collective::reduce_scatter;
    a.shape.type = type;
    a.shape.op = op;
    a.shape.count = recv_count * world;
    a.shape.in_place =
        send != nullptr &&
        recv == bitrail::api::offset(send, part * static_cast<uint64_t>(comm->world.rank));
    a.send = send;
    // In place there is one buffer, the whole, and the result is a part of it.
    a.recv = a.shape.in_place ? const_cast<void*>(send) : recv;
    a.send_bytes = part * world;
    a.recv_bytes = part;
    return bitrail::api::run(comm, a, request);
  });
}

bitrail_status_t bitrail_allgather(bitrail_comm_t comm, const void* send, void* recv,
                                   size_t send_count, bitrail_type_t type,
                                   bitrail_request_t* request) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    const uint64_t part = send_count * bitrail_type_size(type);
    const auto world = static_cast<uint64_t>(comm->world.size);
    Arguments a;
    a.shape.collective = Collective::allgather;
    a.shape.type = type;
    a.shape.count = send_count * world;
    a.shape.in_place =
        recv != nullptr &&
        send == bitrail::api::offset(recv, part * static_cast<uint64_t>(comm->world.rank));
    a.send = send;
    a.recv = recv;
    a.send_bytes = part;
    a.recv_bytes = part * world;
    return bitrail::api::run(comm, a, request);
  });
}

bitrail_status_t bitrail_broadcast(bitrail_comm_t comm, const void* send, void* recv, size_t count,
                                   bitrail_type_t type, int root, bitrail_request_t* request) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    const bool is_root = comm->world.rank == root;
    Arguments a;
    a.shape.collective = Collective::broadcast;
    a.shape.type = type;
    a.shape.root = root;
    a.shape.count = count;
    a.shape.in_place = !is_root || send == recv;  // the others read nothing of their own
    a.send = is_root ? send : recv;
    a.recv = recv;
    a.send_bytes = a.recv_bytes = count * bitrail_type_size(type);
    return bitrail::api::run(comm, a, request);
  });
}

bitrail_status_t bitrail_alltoall(bitrail_comm_t comm, const void* send, void* recv, size_t count,
                                  bitrail_type_t type, bitrail_request_t* request) {
  return guarded([&]() -> Status {
    if (comm == nullptr) return Status(BITRAIL_ERR_INVALID_ARGUMENT, "comm is NULL");
    const auto world = static_cast<uint64_t>(comm->world.size);
    Arguments a;
    a.shape.collective = Collective::alltoall;
    a.shape.type = type;
    a.shape.count = count * world;
    a.send = send;
    a.recv = recv;
    a.send_bytes = a.recv_bytes = count * world * bitrail_type_size(type);
    return bitrail::api::run(comm, a, request);
  });
}

bitrail_status_t bitrail_barrier(bitrail_comm_t comm, bitrail_request_t* request) {
  return guarded([&]() -> Status {
    Arguments a;
    a.shape.collective = Collective::barrier;
    a.shape.type = BITRAIL_UINT8;
    return bitrail::api::run(comm, a, request);
  });
}

}  // extern "C"
