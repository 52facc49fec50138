// Devices, what can be reduced, listening, connecting, closing.
#include "plugin/collnet/comm.h"
#include "plugin/collnet/core.h"
#include "plugin/log/log.h"
#include "plugin/net/devices.h"

namespace bitrail::plugin::collnet {
namespace {

constexpr int kMaxRanks = 65'536;

bool type_of(int theirs, bitrail_type_t* type) {
  switch (theirs) {
    case nccl::kUint8:
      *type = BITRAIL_UINT8;
      return true;
    case nccl::kInt32:
      *type = BITRAIL_INT32;
      return true;
    case nccl::kInt64:
      *type = BITRAIL_INT64;
      return true;
    case nccl::kFloat16:
      *type = BITRAIL_FLOAT16;
      return true;
    case nccl::kFloat32:
      *type = BITRAIL_FLOAT32;
      return true;
    case nccl::kFloat64:
      *type = BITRAIL_FLOAT64;
      return true;
    case nccl::kBfloat16:
      *type = BITRAIL_BFLOAT16;
      return true;
    default:
      return false;
  }
}

bool operation_of(int theirs, bitrail_op_t* operation) {
  if (theirs == nccl::kSum) *operation = BITRAIL_SUM;
  if (theirs == nccl::kMax) *operation = BITRAIL_MAX;
  if (theirs == nccl::kMin) *operation = BITRAIL_MIN;
  return theirs == nccl::kSum || theirs == nccl::kMax || theirs == nccl::kMin;
}

const char* name_of(Mode mode) { return mode == Mode::onebit ? "onebit" : "exact"; }

// What every rank says has to fit this one's; rank by rank, so that the message names it.
Status read_handles(void* const* handles, int ranks, const Comm& own, std::vector<Meeting>* all) {
  all->resize(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; rank++) {
    if (handles[rank] == nullptr) {
      return failure(BITRAIL_ERR_INVALID_ARGUMENT, "the handle of rank {} is NULL", rank);
    }
    Meeting* meeting = &(*all)[static_cast<size_t>(rank)];
    BITRAIL_TRY(decode_handle(handles[rank], rank, meeting));
    if (meeting->comm_id != own.meeting.comm_id) {
      return failure(BITRAIL_ERR_JOB_ID,
                     "the handle of rank {} is of communicator {:#018x}, this rank's is {:#018x}: "
                     "another job's handle, or ranks with different NCCL versions",
                     rank, meeting->comm_id, own.meeting.comm_id);
    }
    if (meeting->mode != own.meeting.mode) {
      return failure(BITRAIL_ERR_MISMATCH,
                     "BITRAIL_COLLNET is {} at rank {} and {} here; it has to be the same at all "
                     "ranks",
                     name_of(meeting->mode), rank, name_of(own.meeting.mode));
    }
  }
  return {};
}

Status meet(void* const* handles, int ranks, int rank, Comm* listening, Comm** joined) {
  if (!listening->port) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "connect was called with this listen comm before");
  }
  // Whatever becomes of it: NCCL forgets the listen comm of a connect that failed.
  const bootstrap::UniqueFd port = std::move(listening->port);
  std::vector<Meeting> all;
  BITRAIL_TRY(read_handles(handles, ranks, *listening, &all));
  if (all[static_cast<size_t>(rank)].nonce != listening->meeting.nonce) {
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "the handle at place {} is not of the listen comm that is given", rank);
  }
  bitrail_comm_t handle = nullptr;
  BITRAIL_TRY(join(choice_of(listening->instance).settings, all, rank, port, &handle));
  Comm* comm = open_comm(Kind::joined, listening->instance);
  comm->mode = listening->meeting.mode;
  comm->rank = rank;
  comm->ranks = ranks;
  comm->handle = handle;
  *joined = comm;
  return {};
}

}  // namespace

bool supports(Mode mode, int type, int reduction, bitrail_type_t* ours, bitrail_op_t* operation) {
  if (mode == Mode::off || !type_of(type, ours) || !operation_of(reduction, operation))
    return false;
  if (mode == Mode::exact) return true;
  const bool compressible =
      *ours == BITRAIL_FLOAT32 || *ours == BITRAIL_FLOAT16 || *ours == BITRAIL_BFLOAT16;
  return *operation == BITRAIL_SUM && compressible;
}

nccl::Result get_devices(int* count) {
  if (count == nullptr) return refuse("devices", "no place for the result");
  *count = mode() != Mode::off && device_count() > 0 ? 1 : 0;
  return nccl::kSuccess;
}

nccl::Result reduce_support(int type, int reduction, int* supported) {
  if (supported == nullptr) return refuse("reduceSupport", "no place for the result");
  bitrail_type_t ours = BITRAIL_FLOAT32;
  bitrail_op_t operation = BITRAIL_SUM;
  *supported = supports(mode(), type, reduction, &ours, &operation) ? 1 : 0;
  return nccl::kSuccess;
}

nccl::Result listen(Instance* instance, int device, void* handle, void** listen_comm) {
  constexpr const char* kCall = "listen";
  if (listen_comm == nullptr) return refuse(kCall, "no place for the result");
  *listen_comm = nullptr;
  if (instance == nullptr) return refuse(kCall, "the context is not from init(), or is finalized");
  if (handle == nullptr) return refuse(kCall, "no place for the handle");
  const Choice choice = choice_of(instance);
  if (choice.mode == Mode::off) return refuse(kCall, "CollNet is off (BITRAIL_COLLNET)");
  if (device != 0 || device_count() < 1) return refuse(kCall, "device {}, there is only 0", device);
  Meeting meeting;
  bootstrap::UniqueFd port;
  const Status status = reserve(choice.settings, &meeting, &port);
  if (!status.ok()) return report(kCall, status);
  meeting.mode = choice.mode;
  meeting.comm_id = instance->comm_id;
  encode_handle(meeting, handle);
  Comm* comm = open_comm(Kind::listening, instance);
  comm->meeting = std::move(meeting);
  comm->port = std::move(port);
  *listen_comm = comm;
  return nccl::kSuccess;
}

nccl::Result connect(void* const* handles, int ranks, int rank, void* listen_comm,
                     void** coll_comm) {
  constexpr const char* kCall = "connect";
  if (coll_comm == nullptr) return refuse(kCall, "no place for the result");
  *coll_comm = nullptr;
  Comm* listening = as(listen_comm, Kind::listening);
  if (listening == nullptr) return refuse(kCall, "the listen comm is NULL or closed");
  if (handles == nullptr) return refuse(kCall, "the list of handles is NULL");
  if (ranks < 1 || ranks > kMaxRanks || rank < 0 || rank >= ranks) {
    return refuse(kCall, "rank {} of {}", rank, ranks);
  }
  Comm* joined = nullptr;
  const Status status = meet(handles, ranks, rank, listening, &joined);
  *coll_comm = joined;
  return status.ok() ? nccl::kSuccess : report(kCall, status);
}

nccl::Result close(void* pointer, bool listener) {
  Comm* comm = as(pointer, listener ? Kind::listening : Kind::joined);
  if (comm == nullptr) {
    return refuse(listener ? "closeListen" : "closeColl",
                  "the comm is NULL, closed already or of another kind");
  }
  close_comm(comm);
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin::collnet
