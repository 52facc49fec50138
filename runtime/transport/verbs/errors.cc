#include "runtime/transport/verbs/errors.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace bitrail::transport::verbs {
namespace {

// A null call: any call that has no line of its own above it.
struct ErrnoHint {
  int error;
  const char* call;
  const char* hint;
};

constexpr ErrnoHint kErrnoHints[] = {
    {ENOMEM, "ibv_reg_mr", "the limit of locked memory is reached; see `ulimit -l`"},
    {ENOMEM, "ibv_create_qp",
     "the device has no room for more queue pairs; use fewer "
     "(BITRAIL_IB_QPS) or raise `ulimit -l`"},
    {ENOMEM, "ibv_create_cq",
     "the device has no room for more completion queues, or `ulimit -l` "
     "is too low"},
    {ENOMEM, "ibv_post_send", "the send queue is full: more work was posted than it has room for"},
    {ENOMEM, "ibv_post_recv", "the receive queue is full: more was posted than it has room for"},
    {ENOMEM, nullptr, "no memory, or the limit of locked memory is reached; see `ulimit -l`"},
    {EINVAL, "ibv_reg_mr",
     "this memory cannot be registered: not mapped, or of a kind that the "
     "device cannot reach"},
    {EINVAL, "ibv_modify_qp",
     "the device refuses a value: MTU or reads outstanding beyond its "
     "limits, a GID or pkey index that it does not have "
     "(BITRAIL_IB_GID_INDEX, BITRAIL_IB_PKEY), or a bad peer address"},
    {EINVAL, "ibv_create_qp",
     "the device refuses the queue's depth, inline size or number of "
     "parts; see ibv_devinfo -v"},
    {EINVAL, nullptr, "the device refuses an argument"},
    {ENODEV, nullptr,
     "the device, its port or its GID is gone: was it removed or did its address "
     "change? see ibv_devinfo and BITRAIL_IB_GID_INDEX"},
    {EIO, nullptr, "the device failed or was reset; see the kernel's log"},
    {ETIMEDOUT, nullptr,
     "the peer's address is not resolved: are both ports in one fabric and "
     "subnet, on the same rail? see BITRAIL_IB_HCA and BITRAIL_IB_GID_INDEX"},
    {ENETUNREACH, nullptr,
     "no route between the two GIDs: one is IPv4 and the other IPv6, or "
     "their subnets differ; see BITRAIL_IB_ADDRESS_FAMILY, "
     "BITRAIL_IB_ADDRESS_RANGE and BITRAIL_IB_GID_INDEX"},
    {EHOSTUNREACH, nullptr,
     "the peer's host does not answer; see BITRAIL_IB_ADDRESS_RANGE and "
     "BITRAIL_IB_GID_INDEX"},
    {EADDRNOTAVAIL, nullptr,
     "this GID does not belong to an interface that is up; see "
     "BITRAIL_IB_GID_INDEX"},
    {EOPNOTSUPP, "ibv_reg_dmabuf_mr",
     "kernel or driver do not register DMA-BUF; peer memory "
     "(nvidia_peermem) or host buffers work without"},
    {EOPNOTSUPP, nullptr, "the device or its driver does not offer this"},
    {EPROTONOSUPPORT, nullptr, "the device or its driver does not offer this"},
    {ENOSYS, nullptr, "the kernel has no RDMA support; load ib_uverbs"},
    {EFAULT, "ibv_reg_mr",
     "this memory is not mapped, or of a kind that the device cannot reach "
     "(device memory needs nvidia_peermem or DMA-BUF)"},
    {EFAULT, nullptr, "an address is not mapped"},
    {EACCES, "ibv_reg_mr", "this memory is read-only, and the device has to write to it"},
    {EACCES, nullptr, "no permission for /dev/infiniband; in a container, pass the devices in"},
    {EPERM, nullptr, "no permission; a container needs CAP_IPC_LOCK and /dev/infiniband"},
    {EAGAIN, nullptr, "the kernel is short of a resource; try with fewer connections"},
    {EMFILE, nullptr, "the limit of open files is reached; see `ulimit -n`"},
    {ENFILE, nullptr, "the system's limit of open files is reached"},
    {EBUSY, nullptr, "it is still in use"},
    {ENOSPC, nullptr, "the device has no room left"},
};

const char* errno_hint(std::string_view call, int error) {
  for (const ErrnoHint& each : kErrnoHints) {
    if (each.error == error && (each.call == nullptr || call.starts_with(each.call))) {
      return each.hint;
    }
  }
  return nullptr;
}

// libibverbs' own names of the states are short of what to do.
const char* completion_hint(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer does not answer: its process ended, its port is down, or the path between "
             "the two GIDs does not work; BITRAIL_IB_TIMEOUT and BITRAIL_IB_RETRY_COUNT wait "
             "longer, BITRAIL_IB_GID_INDEX chooses another address";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "the peer posted no receive in time: it is overloaded or stopped";
    case IBV_WC_LOC_PROT_ERR:
      return "the local memory is not registered (any more) for this range";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's memory is not registered (any more) for this range: was it freed while a "
             "receive was pending?";
    case IBV_WC_LOC_LEN_ERR:
      return "a message was longer than its receive, or than the port allows";
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer refuses the request: longer than its receive, or not permitted";
    case IBV_WC_REM_OP_ERR:
      return "the peer could not complete the request";
    case IBV_WC_LOC_QP_OP_ERR:
      return "the device found an inconsistency in the work; see the kernel's log";
    case IBV_WC_WR_FLUSH_ERR:
      return "the connection failed before: its first error tells why";
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return "the registration does not allow this access";
    case IBV_WC_BAD_RESP_ERR:
      return "the peer's answer is not valid";
    case IBV_WC_FATAL_ERR:
      return "the device failed; see the kernel's log";
    case IBV_WC_RESP_TIMEOUT_ERR:
      return "the peer did not answer in time";
    case IBV_WC_REM_ABORT_ERR:
      return "the peer ended the connection";
    default:
      return "see the kernel's log of both hosts";
  }
}

const char* completion_name(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return "success";
    case IBV_WC_LOC_LEN_ERR:
      return "local length error";
    case IBV_WC_LOC_QP_OP_ERR:
      return "local queue pair operation error";
    case IBV_WC_LOC_PROT_ERR:
      return "local protection error";
    case IBV_WC_WR_FLUSH_ERR:
      return "work request flushed";
    case IBV_WC_MW_BIND_ERR:
      return "memory window bind error";
    case IBV_WC_BAD_RESP_ERR:
      return "bad response";
    case IBV_WC_LOC_ACCESS_ERR:
      return "local access error";
    case IBV_WC_REM_INV_REQ_ERR:
      return "remote invalid request";
    case IBV_WC_REM_ACCESS_ERR:
      return "remote access error";
    case IBV_WC_REM_OP_ERR:
      return "remote operation error";
    case IBV_WC_RETRY_EXC_ERR:
      return "transport retry counter exceeded";
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return "receiver-not-ready retry counter exceeded";
    case IBV_WC_REM_ABORT_ERR:
      return "remote abort";
    case IBV_WC_FATAL_ERR:
      return "fatal error";
    case IBV_WC_RESP_TIMEOUT_ERR:
      return "response timeout";
    default:
      return "error";
  }
}

}  // namespace

std::string errno_text(const char* call, int error) {
  const char* hint = errno_hint(call, error);
  char buffer[128];
  const char* name = strerror_r(error, buffer, sizeof(buffer));
  if (hint == nullptr) return fmt::format("{}: {} (errno {})", call, name, error);
  return fmt::format("{}: {} (errno {}): {}", call, name, error, hint);
}

std::string completion_text(ibv_wc_status status, uint32_t vendor_error) {
  std::string text = fmt::format("{} ({})", completion_name(status), static_cast<int>(status));
  if (status == IBV_WC_SUCCESS) return text;
  if (vendor_error != 0) text += fmt::format(", vendor error {:#x}", vendor_error);
  return text + ": " + completion_hint(status);
}

}  // namespace bitrail::transport::verbs
