// Devices, listening, connecting, accepting, closing.
#include <climits>
#include <cstring>

#include "plugin/log/log.h"
#include "plugin/net/comm.h"
#include "plugin/net/core.h"
#include "plugin/net/handle.h"

namespace bitrail::plugin {
namespace {

constexpr int kMaxComms = 64 << 10;

// The number of a device in a domain's context. A connection uses its device's ports, no other.
Status resolve(Domain* domain, int index, int* number) {
  return domain->context->combine(device(index)->parts, number);
}

Status start_listening(Instance* instance, int device, void* handle, Comm** comm) {
  Domain* domain = nullptr;
  BITRAIL_TRY(acquire_domain(instance, &domain));
  transport::Handle inner;
  std::unique_ptr<transport::Listener> listener;
  Status status;
  {
    const std::lock_guard lock(domain->mutex);
    int number = 0;
    status = resolve(domain, device, &number);
    if (status.ok()) status = domain->context->listen(number, &inner, &listener);
    if (status.ok()) status = encode_handle(inner, instance->comm_id, handle);
    if (!status.ok()) listener.reset();
  }
  if (!status.ok()) {
    release_domain(domain);
    return status;
  }
  *comm = open_comm(Kind::listening, domain, device);
  (*comm)->listener = std::move(listener);
  return {};
}

// The set-up that was begun with this handle, or a new one.
Status find_pending(Instance* instance, int device, const void* key, Pending** pending) {
  transport::Handle handle;
  BITRAIL_TRY(decode_handle(key, instance->comm_id, &handle));
  {
    const std::lock_guard lock(instance->mutex);
    const auto known = instance->pending.find(key);
    if (known != instance->pending.end() && known->second.device == device &&
        known->second.handle.bytes == handle.bytes) {
      *pending = &known->second;
      return {};
    }
  }
  drop_pending(instance, key);  // the memory was used for another handle before
  Pending made;
  BITRAIL_TRY(acquire_domain(instance, &made.domain));
  made.device = device;
  made.handle = handle;
  made.deadline = Deadline::in_ms(instance->settings.timeout_ms);
  const std::lock_guard lock(instance->mutex);
  *pending = &instance->pending.emplace(key, std::move(made)).first->second;
  return {};
}

Status poll_connect(Instance* instance, int device, const void* key, Comm** comm) {
  Pending* pending = nullptr;
  BITRAIL_TRY(find_pending(instance, device, key, &pending));
  Domain* domain = pending->domain;
  std::unique_ptr<transport::Sender> sender;
  Status status;
  {
    const std::lock_guard lock(domain->mutex);
    int number = 0;
    status = resolve(domain, device, &number);
    if (status.ok()) {
      status = domain->context->connect(number, pending->handle, {-1}, pending->deadline,
                                        &pending->state, &sender);
    }
    progress(domain);
  }
  if (status.ok() && sender != nullptr) {
    {
      const std::lock_guard lock(instance->mutex);
      domain->users++;
    }
    *comm = open_comm(Kind::sending, domain, device);
    (*comm)->sender = std::move(sender);
  }
  if (!status.ok() || *comm != nullptr) drop_pending(instance, key);
  return status;
}

Status poll_accept(Comm* listening, Comm** comm) {
  Domain* domain = listening->domain;
  Instance* instance = domain->instance;
  std::unique_ptr<transport::Receiver> receiver;
  transport::Peer peer;
  {
    const std::lock_guard lock(domain->mutex);
    progress(domain);
    BITRAIL_TRY(listening->listener->accept(&receiver, &peer));
  }
  if (receiver == nullptr) {
    if (listening->deadline.at_ns == INT64_MAX) {
      listening->deadline = Deadline::in_ms(instance->settings.timeout_ms);
    }
    if (!listening->deadline.passed()) return {};
    listening->deadline = {};
    return failure(BITRAIL_ERR_TIMEOUT,
                   "nobody connected within {} ms (BITRAIL_TIMEOUT_MS): the peer is gone, runs "
                   "without this plugin (NCCL_NET_PLUGIN), or cannot reach this rank's interface "
                   "(BITRAIL_INTERFACE, NCCL_SOCKET_IFNAME)",
                   instance->settings.timeout_ms);
  }
  listening->deadline = {};
  {
    const std::lock_guard lock(instance->mutex);
    domain->users++;
  }
  *comm = open_comm(Kind::receiving, domain, listening->device);
  (*comm)->receiver = std::move(receiver);
  return {};
}

}  // namespace

nccl::Result get_devices(int* count) {
  if (count == nullptr) return refuse("devices", "no place for the result");
  *count = device_count();
  return nccl::kSuccess;
}

nccl::Result get_properties(int index, nccl::PropertiesV12* properties) {
  const Device* found = device(index);
  if (properties == nullptr || found == nullptr) {
    return refuse("getProperties", "device {} of {}", index, device_count());
  }
  const transport::DeviceProperties* known = &found->properties;
  *properties = {};
  properties->name = const_cast<char*>(known->name.c_str());
  const bool has_path = !known->pci_path.empty();
  properties->pci_path = has_path ? const_cast<char*>(known->pci_path.c_str()) : nullptr;
  properties->guid = known->guid;
  properties->pointer_support = pointer_support(*known);
  properties->registration_is_global = known->registration_is_global ? 1 : 0;
  properties->speed_mbps = static_cast<int>(known->speed_mbps);
  properties->port = known->port;
  properties->latency_us = static_cast<float>(known->latency_us);
  properties->max_comms = kMaxComms;
  properties->max_receives = known->max_grouped_receives;
  properties->device_type = nccl::kNetDeviceHost;
  properties->virtual_device.count = static_cast<int>(found->parts.size());
  std::copy(found->parts.begin(), found->parts.end(), properties->virtual_device.devices);
  properties->max_p2p_bytes = std::min(nccl::kMaxMessageBytes, known->max_message_bytes);
  properties->max_collective_bytes = properties->max_p2p_bytes;
  properties->max_multi_request = 1;
  properties->rail_id = properties->plane_id = nccl::kUndefined;
  return nccl::kSuccess;
}

nccl::Result make_device(const int* parts, int count, int* index) {
  constexpr const char* kCall = "makeVDevice";
  if (parts == nullptr || index == nullptr) return refuse(kCall, "no list, or no place");
  if (count < 1 || static_cast<size_t>(count) > transport::kMaxCombined) {
    return refuse(kCall, "{} parts, allowed are 1 to {}", count, transport::kMaxCombined);
  }
  const Status status = make_virtual_device({parts, parts + count}, index);
  return status.ok() ? nccl::kSuccess : report(kCall, status);
}

nccl::Result listen(Instance* instance, int device, void* handle, void** listen_comm) {
  constexpr const char* kCall = "listen";
  if (listen_comm == nullptr) return refuse(kCall, "no place for the result");
  *listen_comm = nullptr;
  if (instance == nullptr) return refuse(kCall, "the context is not from init(), or is finalized");
  if (handle == nullptr) return refuse(kCall, "no place for the handle");
  if (bitrail::plugin::device(device) == nullptr) {
    return refuse(kCall, "device {} of {}", device, device_count());
  }
  Comm* comm = nullptr;
  const Status status = start_listening(instance, device, handle, &comm);
  *listen_comm = comm;
  return status.ok() ? nccl::kSuccess : report(kCall, status);
}

nccl::Result connect(Instance* instance, int device, void* handle, void** send_comm) {
  constexpr const char* kCall = "connect";
  if (send_comm == nullptr) return refuse(kCall, "no place for the result");
  *send_comm = nullptr;
  if (instance == nullptr) return refuse(kCall, "the context is not from init(), or is finalized");
  if (handle == nullptr) return refuse(kCall, "the handle is NULL");
  if (bitrail::plugin::device(device) == nullptr) {
    return refuse(kCall, "device {} of {}", device, device_count());
  }
  Comm* comm = nullptr;
  const Status status = poll_connect(instance, device, handle, &comm);
  *send_comm = comm;
  return status.ok() ? nccl::kSuccess : report(kCall, status);
}

nccl::Result accept(void* listen_comm, void** receive_comm) {
  constexpr const char* kCall = "accept";
  if (receive_comm == nullptr) return refuse(kCall, "no place for the result");
  *receive_comm = nullptr;
  Comm* listening = as(listen_comm, Kind::listening);
  if (listening == nullptr) return refuse(kCall, "the listen comm is NULL or closed");
  Comm* comm = nullptr;
  const Status status = poll_accept(listening, &comm);
  *receive_comm = comm;
  return status.ok() ? nccl::kSuccess : report(kCall, status);
}

nccl::Result close(void* pointer, bool listener, bool sender) {
  const Kind kind = listener ? Kind::listening : (sender ? Kind::sending : Kind::receiving);
  Comm* comm = as(pointer, kind);
  if (comm == nullptr) {
    return refuse(listener ? "closeListen" : (sender ? "closeSend" : "closeRecv"),
                  "the comm is NULL, closed already or of another kind");
  }
  close_comm(comm);
  return nccl::kSuccess;
}

}  // namespace bitrail::plugin
