// isend, irecv, iflush, test.
#include <algorithm>
#include <climits>

#include "plugin/log/log.h"
#include "plugin/net/comm.h"
#include "plugin/net/core.h"
#include "plugin/net/memory.h"

namespace bitrail::plugin {
namespace {

transport::Memory* memory_of(void* pointer) {
  return pointer == nullptr ? nullptr : static_cast<Registration*>(pointer)->memory.get();
}

bool fits(const void* data, size_t bytes, int tag, const void* memory, const Domain* domain) {
  return bytes <= nccl::kMaxMessageBytes && tag >= 0 && (data != nullptr || bytes == 0) &&
         (memory == nullptr || static_cast<const Registration*>(memory)->domain == domain);
}

// What is wrong with a buffer that does not fit.
std::string misuse(const void* data, size_t bytes, int tag) {
  if (bytes > nccl::kMaxMessageBytes) {
    return fmt::format("{} bytes, allowed are {}", bytes, nccl::kMaxMessageBytes);
  }
  if (tag < 0) return fmt::format("tag {} is negative", tag);
  if (data == nullptr) return fmt::format("{} bytes at NULL", bytes);
  return "the memory is registered with another communicator";
}

__attribute__((cold, noinline)) nccl::Result refuse_buffer(const char* call, int index,
                                                           const void* data, size_t bytes,
                                                           int tag) {
  return refuse(call, "buffer {}: {}", index, misuse(data, bytes, tag));
}

// The profiler's event for a part of a request.
void start_event(Request* request, void* parent, int operation, size_t bytes) {
  const nccl::ProfilerCallback profiler =
      request->comm->domain->instance->profiler.load(std::memory_order_acquire);
  if (profiler == nullptr || parent == nullptr) return;
  nccl::ProfilerSocketEvent event{1, -1, operation, bytes};
  profiler(&request->event[request->events], nccl::kProfilerStart, parent, nccl::kProfilerSocketId,
           &event);
  request->events++;
}

void stop_events(Request* request) {
  const nccl::ProfilerCallback profiler =
      request->comm->domain->instance->profiler.load(std::memory_order_acquire);
  for (int i = 0; i < request->events; i++) {
    profiler(&request->event[i], nccl::kProfilerStop, nullptr, 0, nullptr);
  }
  request->events = 0;
}

void give_back(Request* request) { request->state.store(State::unused, std::memory_order_release); }

// The transport did not take it. A peer that is gone is told by test(), whatever was being posted.
__attribute__((cold, noinline)) nccl::Result not_posted(const char* call, const Status& status,
                                                        Request* request, void** result) {
  if (status.code() == BITRAIL_ERR_PEER_LOST) {
    request->transport.status = status.code();
    request->transport.text = status.text();
    request->state.store(State::done, std::memory_order_release);
    *result = request;
    return nccl::kSuccess;
  }
  Domain* domain = request->comm->domain;
  give_back(request);
  if (status.ok()) {
    const std::lock_guard lock(domain->mutex);
    progress(domain);
    return nccl::kSuccess;
  }
  return report(call, status);
}

// All requests are in flight: something has to end first.
nccl::Result no_room(Comm* comm) {
  progress(comm->domain);
  return nccl::kSuccess;
}

}  // namespace

nccl::Result isend(void* send_comm, void* data, size_t bytes, int tag, void* memory, void* parent,
                   void** result) {
  constexpr const char* kCall = "isend";
  if (result == nullptr) return refuse(kCall, "no place for the request");
  *result = nullptr;
  Comm* comm = as(send_comm, Kind::sending);
  if (comm == nullptr) return refuse(kCall, "the send comm is NULL or closed");
  if (!fits(data, bytes, tag, memory, comm->domain)) [[unlikely]] {
    return refuse_buffer(kCall, 0, data, bytes, tag);
  }
  Request* request = nullptr;
  bool accepted = false;
  Status status;
  {
    const std::lock_guard lock(comm->domain->mutex);
    request = take_request(comm);
    if (request == nullptr) return no_room(comm);
    request->sent = true;
    request->count = 1;
    request->bytes = bytes;
    status = comm->sender->isend(data, bytes, static_cast<uint64_t>(tag), 0, memory_of(memory),
                                 &request->transport, &accepted);
  }
  if (!accepted || !status.ok()) [[unlikely]] {
    return not_posted(kCall, status, request, result);
  }
  if (parent != nullptr) start_event(request, parent, 0, bytes);
  *result = request;
  return nccl::kSuccess;
}

nccl::Result irecv(void* receive_comm, int count, void** data, const size_t* bytes, const int* tags,
                   void** memories, void** parents, void** result) {
  constexpr const char* kCall = "irecv";
  if (result == nullptr) return refuse(kCall, "no place for the request");
  // May hold NCCL's mark for "nobody wants to know"; everybody is told here.
  *result = nullptr;
  Comm* comm = as(receive_comm, Kind::receiving);
  if (comm == nullptr) return refuse(kCall, "the receive comm is NULL or closed");
  if (count < 1 || count > transport::kMaxGroupedReceives) {
    return refuse(kCall, "{} buffers, allowed are 1 to {}", count, transport::kMaxGroupedReceives);
  }
  if (data == nullptr || bytes == nullptr || tags == nullptr) {
    return refuse(kCall, "the lists of buffers, sizes or tags are NULL");
  }
  transport::Buffer buffers[transport::kMaxGroupedReceives];
  for (int i = 0; i < count; i++) {
    void* memory = memories == nullptr ? nullptr : memories[i];
    if (!fits(data[i], bytes[i], tags[i], memory, comm->domain)) [[unlikely]] {
      return refuse_buffer(kCall, i, data[i], bytes[i], tags[i]);
    }
    buffers[i] = {data[i], bytes[i], static_cast<uint64_t>(tags[i]), memory_of(memory)};
  }
  Request* request = nullptr;
  bool accepted = false;
  Status status;
  {
    const std::lock_guard lock(comm->domain->mutex);
    request = take_request(comm);
    if (request == nullptr) return no_room(comm);
    request->sent = false;
    request->count = count;
    status = comm->receiver->irecv(count, buffers, &request->transport, &accepted);
  }
  if (!accepted || !status.ok()) [[unlikely]] {
    return not_posted(kCall, status, request, result);
  }
  for (int i = 0; parents != nullptr && i < count; i++) {
    start_event(request, parents[i], 1, bytes[i]);
  }
  *result = request;
  return nccl::kSuccess;
}

nccl::Result iflush(void* receive_comm, int count, void** data, const int* bytes, void** memories,
                    void** result) {
  constexpr const char* kCall = "iflush";
  if (result == nullptr) return refuse(kCall, "no place for the request");
  *result = nullptr;
  Comm* comm = as(receive_comm, Kind::receiving);
  if (comm == nullptr) return refuse(kCall, "the receive comm is NULL or closed");
  if (count < 1 || count > transport::kMaxGroupedReceives || data == nullptr || bytes == nullptr) {
    return refuse(kCall, "{} buffers, or lists that are NULL", count);
  }
  transport::Buffer buffers[transport::kMaxGroupedReceives];
  for (int i = 0; i < count; i++) {
    void* memory = memories == nullptr ? nullptr : memories[i];
    if (bytes[i] < 0) return refuse(kCall, "buffer {}: {} bytes", i, bytes[i]);
    const auto size = static_cast<size_t>(bytes[i]);
    if (!fits(data[i], size, 0, memory, comm->domain)) {
      return refuse_buffer(kCall, i, data[i], size, 0);
    }
    buffers[i] = {data[i], size, 0, memory_of(memory)};
  }
  const std::lock_guard lock(comm->domain->mutex);
  Request* request = take_request(comm);
  if (request == nullptr) return no_room(comm);
  request->sent = false;
  request->count = 0;
  const Status status = comm->receiver->flush(count, buffers, &request->transport);
  if (!status.ok()) {
    give_back(request);
    return report(kCall, status);
  }
  *result = request;
  return nccl::kSuccess;
}

nccl::Result test(void* pointer, int* done, int* sizes) {
  constexpr const char* kCall = "test";
  if (done == nullptr) return refuse(kCall, "no place for the result");
  *done = 0;
  auto* request = static_cast<Request*>(pointer);
  if (request == nullptr) return refuse(kCall, "the request is NULL");
  if (request->comm->kind.load(std::memory_order_acquire) == Kind::closed) {
    return refuse(kCall, "the comm of this request is closed");
  }
  State state = request->state.load(std::memory_order_acquire);
  if (state == State::unused) return refuse(kCall, "the request is not in flight");
  if (state == State::pending) {
    {
      Domain* domain = request->comm->domain;
      const std::lock_guard lock(domain->mutex);
      progress(domain);
    }
    state = request->state.load(std::memory_order_acquire);
    if (state == State::pending) return nccl::kSuccess;
  }
  if (request->events > 0) stop_events(request);
  if (request->transport.status != BITRAIL_OK) {
    const Status status(request->transport.status, request->transport.text);
    give_back(request);
    return report(kCall, status);
  }
  if (sizes != nullptr && request->sent) sizes[0] = static_cast<int>(request->bytes);
  for (int i = 0; sizes != nullptr && !request->sent && i < request->count; i++) {
    sizes[i] = static_cast<int>(std::min<size_t>(request->transport.received[i], INT_MAX));
  }
  give_back(request);
  *done = 1;
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin
