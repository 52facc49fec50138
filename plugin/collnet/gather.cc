// iallgather and ireducescatter, of windows into the ranks' parts.
#include <algorithm>

#include "plugin/collnet/calls_in_flight.h"
#include "plugin/collnet/core.h"
#include "plugin/log/log.h"

namespace bitrail::plugin::collnet {
namespace {

// Of the window, what is of a rank's part; counted from the window's begin.
struct Share {
  size_t begin, bytes;
};
Share share_of(const Window& window, size_t rank) {
  const size_t first = std::max(rank * window.bytes_per_rank, window.offset);
  const size_t last = std::min((rank + 1) * window.bytes_per_rank, window.offset + window.bytes);
  if (first >= last) return {0, 0};
  return {first - window.offset, last - first};
}

bool is_whole(const Window& window, const Comm& comm) {
  return window.bytes == window.bytes_per_rank * static_cast<size_t>(comm.ranks);
}

Status check_window(const Comm& comm, const Window& window, size_t element) {
  size_t all = 0, end = 0;
  if (window.bytes_per_rank % element != 0 || window.offset % element != 0 ||
      window.bytes % element != 0 ||
      __builtin_mul_overflow(window.bytes_per_rank, static_cast<size_t>(comm.ranks), &all) ||
      __builtin_add_overflow(window.offset, window.bytes, &end) || end > all) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "a window of {} bytes at {} into {} parts of {} bytes", window.bytes,
                   window.offset, comm.ranks, window.bytes_per_rank);
  }
  if (window.bytes > nccl::kMaxCollectiveBytes) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "a window of {} bytes, allowed are {}",
                   window.bytes, nccl::kMaxCollectiveBytes);
  }
  return {};
}

// Each rank whose part is in the window broadcasts its share.
Status begin_gather(Request* request, const void* mine, void* receive, const Window& window) {
  const Comm& comm = *request->comm;
  if (is_whole(window, comm)) {
    request->parts.assign(1, nullptr);
    return said(bitrail_allgather(comm.handle, mine, receive, window.bytes_per_rank, BITRAIL_UINT8,
                                  request->parts.data()));
  }
  request->parts.reserve(static_cast<size_t>(comm.ranks));
  for (int rank = 0; rank < comm.ranks; rank++) {
    const Share share = share_of(window, static_cast<size_t>(rank));
    if (share.bytes == 0) continue;
    request->parts.push_back(nullptr);
    BITRAIL_TRY(
        said(bitrail_broadcast(comm.handle, mine, static_cast<std::byte*>(receive) + share.begin,
                               share.bytes, BITRAIL_UINT8, rank, &request->parts.back())));
  }
  return {};
}

// The whole window is reduced everywhere, unless it is cut where the library cuts it.
Status begin_scatter(Request* request, const void* send, void* mine, const Window& window,
                     bitrail_type_t type, bitrail_op_t operation) {
  const Comm& comm = *request->comm;
  const size_t element = bitrail_type_size(type);
  request->parts.assign(1, nullptr);
  if (is_whole(window, comm)) {
    return said(bitrail_reduce_scatter(comm.handle, send, mine, window.bytes_per_rank / element,
                                       type, operation, request->parts.data()));
  }
  request->scratch.resize(window.bytes);
  const Share own = share_of(window, static_cast<size_t>(comm.rank));
  request->begin = own.begin;
  request->length = own.bytes;
  request->receive = mine;
  return said(bitrail_allreduce(comm.handle, send, request->scratch.data(), window.bytes / element,
                                type, operation, request->parts.data()));
}

}  // namespace

nccl::Result iallgather(void* pointer, const void* mine, void* receive, void* send_memory,
                        void* receive_memory, const Window& window, void** result) {
  constexpr const char* kCall = "iallgather";
  Comm* comm = nullptr;
  Status status = open_call(pointer, result, &comm);
  if (status.ok()) status = check_window(*comm, window, 1);
  if (!status.ok()) return report(kCall, status);
  const std::lock_guard lock(comm->mutex);
  const size_t own = share_of(window, static_cast<size_t>(comm->rank)).bytes;
  Request* request = nullptr;
  status =
      begin_call(comm, {mine, own, send_memory}, {receive, window.bytes, receive_memory}, &request);
  if (!status.ok()) return report(kCall, status);
  if (request == nullptr) return nccl::kSuccess;
  return end_call(kCall, begin_gather(request, mine, receive, window), request, result);
}

nccl::Result ireduce_scatter(void* pointer, const void* send, void* mine, void* send_memory,
                             void* receive_memory, const Window& window, int type, int reduction,
                             void** result) {
  constexpr const char* kCall = "ireducescatter";
  Comm* comm = nullptr;
  bitrail_type_t ours = BITRAIL_FLOAT32;
  bitrail_op_t operation = BITRAIL_SUM;
  Status status = open_call(pointer, result, &comm);
  if (status.ok()) status = reduction_of(*comm, type, reduction, &ours, &operation);
  if (status.ok()) status = check_window(*comm, window, bitrail_type_size(ours));
  if (!status.ok()) return report(kCall, status);
  const std::lock_guard lock(comm->mutex);
  const size_t own = share_of(window, static_cast<size_t>(comm->rank)).bytes;
  Request* request = nullptr;
  status =
      begin_call(comm, {send, window.bytes, send_memory}, {mine, own, receive_memory}, &request);
  if (!status.ok()) return report(kCall, status);
  if (request == nullptr) return nccl::kSuccess;
  Status begun = begin_scatter(request, send, mine, window, ours, operation);
  return end_call(kCall, std::move(begun), request, result);
}

}  // namespace bitrail::plugin::collnet
