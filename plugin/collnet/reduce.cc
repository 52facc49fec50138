// iallreduce, iflush, test.
#include <algorithm>
#include <climits>
#include <cstring>

#include "kernels/host/convert.h"
#include "plugin/collnet/calls_in_flight.h"
#include "plugin/collnet/core.h"
#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {
namespace {

constexpr size_t kTile = 256;

// The library gives the mean of the ranks, NCCL asked for the sum.
void take_sum(void* user, size_t /*segment*/, size_t begin, size_t count, const float* values) {
  const auto* request = static_cast<const Request*>(user);
  if (request->type == BITRAIL_FLOAT32) {
    float* out = static_cast<float*>(request->receive) + begin;
    for (size_t i = 0; i < count; i++) out[i] = values[i] * request->factor;
    return;
  }
  const auto convert =
      request->type == BITRAIL_FLOAT16 ? kernels::FloatToHalf : kernels::FloatToBFloat16;
  uint16_t* out = static_cast<uint16_t*>(request->receive) + begin;
  float scaled[kTile];
  for (size_t done = 0; done < count; done += kTile) {
    const size_t length = std::min(kTile, count - done);
    for (size_t i = 0; i < length; i++) scaled[i] = values[done + i] * request->factor;
    convert(scaled, length, out + done);
  }
}

Status begin_exact(Request* request, bitrail_op_t operation) {
  request->parts.assign(1, nullptr);
  return said(bitrail_allreduce(request->comm->handle, request->send, request->receive,
                                request->count, request->type, operation, request->parts.data()));
}

Status begin_compressed(Request* request) {
  Comm* comm = request->comm;
  bitrail_error_state_t state = nullptr;
  BITRAIL_TRY(
      comm->states.find(comm->handle, request->send, request->count, request->type, &state));
  bitrail_onebit_call_t call{};
  call.struct_size = sizeof(call);
  call.send = request->send;
  call.type = request->type;
  call.consume = take_sum;
  call.user = request;
  request->compressed = true;
  request->factor = static_cast<float>(comm->ranks);
  comm->compressing = request;
  request->parts.assign(1, nullptr);
  return said(bitrail_onebit_allreduce(state, &call, request->parts.data()));
}

// NaN or Inf at some rank: all ranks refused alike and nothing changed. NCCL's sum has them, so the
// call is made again, exactly.
Status repeat_exactly(Request* request) {
  request->compressed = false;
  request->failed = {};
  return begin_exact(request, BITRAIL_SUM);
}

Status poll(Request* request) {
  for (bitrail_request_t& part : request->parts) {
    if (part == nullptr) continue;
    const bitrail_status_t code = bitrail_test(&part);
    if (code == BITRAIL_IN_PROGRESS) return Status(code, "");
    if (code != BITRAIL_OK && request->failed.ok()) request->failed = said(code);
  }
  request->parts.clear();
  if (request->compressed && request->failed.code() == BITRAIL_ERR_NOT_FINITE) {
    request->failed = repeat_exactly(request);
    if (request->failed.ok()) return Status(BITRAIL_IN_PROGRESS, "");
  }
  if (!request->failed.ok()) return request->failed;
  if (request->length > 0) {
    memcpy(request->receive, request->scratch.data() + request->begin, request->length);
  }
  return {};
}

}  // namespace

nccl::Result iallreduce(void* pointer, const void* send, void* receive, size_t count, int type,
                        int reduction, void* send_memory, void* receive_memory, void** result) {
  constexpr const char* kCall = "iallreduce";
  Comm* comm = nullptr;
  bitrail_type_t ours = BITRAIL_FLOAT32;
  bitrail_op_t operation = BITRAIL_SUM;
  Status status = open_call(pointer, result, &comm);
  if (status.ok()) status = reduction_of(*comm, type, reduction, &ours, &operation);
  if (!status.ok()) return report(kCall, status);
  size_t bytes = 0;
  if (__builtin_mul_overflow(count, bitrail_type_size(ours), &bytes) ||
      bytes > nccl::kMaxCollectiveBytes) {
    return refuse(kCall, "{} elements, allowed are {} bytes", count, nccl::kMaxCollectiveBytes);
  }
  const std::lock_guard lock(comm->mutex);
  Request* request = nullptr;
  status = begin_call(comm, {send, bytes, send_memory}, {receive, bytes, receive_memory}, &request);
  if (!status.ok()) return report(kCall, status);
  if (request == nullptr) return nccl::kSuccess;
  request->send = send;
  request->receive = receive;
  request->count = count;
  request->type = ours;
  const bool known = is_users(request->memory[0]) && is_users(request->memory[1]);
  const bool compress = comm->mode == Mode::onebit && known && count > 0;
  Status begun;
  if (compress) {
    begun = begin_compressed(request);
  } else {
    begun = begin_exact(request, operation);
  }
  return end_call(kCall, std::move(begun), request, result);
}

nccl::Result iflush(void* pointer, void* data, int bytes, void* memory, void** result) {
  constexpr const char* kCall = "iflush";
  Comm* comm = nullptr;
  Status status = open_call(pointer, result, &comm);
  if (!status.ok()) return report(kCall, status);
  if (bytes < 0) return refuse(kCall, "{} bytes", bytes);
  const std::lock_guard lock(comm->mutex);
  const Buffer buffer{data, static_cast<size_t>(bytes), memory};
  const Memory* found = nullptr;
  status = check_buffer(*comm, buffer, &found);
  if (!status.ok()) return report(kCall, status);
  // Results in host memory are there when their call is done.
  *result = take_request(comm);
  return nccl::kSuccess;
}

nccl::Result test(void* pointer, int* done, int* bytes) {
  constexpr const char* kCall = "test";
  if (done == nullptr) return refuse(kCall, "no place for the result");
  *done = 0;
  auto* request = static_cast<Request*>(pointer);
  if (request == nullptr) return refuse(kCall, "the request is NULL");
  Comm* comm = as(request->comm, Kind::joined);
  if (comm == nullptr) return refuse(kCall, "the comm of this request is closed");
  const std::lock_guard lock(comm->mutex);
  if (!request->used) return refuse(kCall, "the request is not in flight");
  const Status status = poll(request);
  if (status.code() == BITRAIL_IN_PROGRESS) return nccl::kSuccess;
  if (!status.ok()) {
    give_back(request);
    return report(kCall, status);
  }
  if (bytes != nullptr) *bytes = static_cast<int>(std::min<size_t>(request->bytes, INT_MAX));
  give_back(request);
  *done = 1;
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin::collnet
