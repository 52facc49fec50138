// Devices, ports and their events.
#include <endian.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/support/fake_verbs_state.h"

namespace bitrail::test {
namespace fake {
namespace {

constexpr int kEmptyGids = 4;  // at the end of each table

ibv_device** get_device_list(int* count) {
  const Lock lock(state().spin);
  auto** list = static_cast<ibv_device**>(calloc(state().devices.size() + 1, sizeof(ibv_device*)));
  int used = 0;
  for (const auto& device : state().devices) {
    if (!device->removed) list[used++] = device.get();
  }
  if (count != nullptr) *count = used;
  return list;
}

void free_device_list(ibv_device** list) { free(list); }

const char* get_device_name(ibv_device* device) { return device->name; }

ibv_context* open_device(ibv_device* device) {
  const Lock lock(state().spin);
  errno = enter(Call::open_device, nullptr);
  if (errno == 0 && static_cast<Device*>(device)->removed) errno = ENODEV;
  if (errno != 0) return nullptr;
  auto* context = new Context;
  context->device = device;
  context->owner = static_cast<Device*>(device);
  context->num_comp_vectors = 1;
  context->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
  if (context->async_fd < 0) {
    delete context;
    return nullptr;
  }
  state().contexts.push_back(context);
  state().counters.contexts++;
  return context;
}

int close_device(ibv_context* context) {
  const Lock lock(state().spin);
  std::erase(state().contexts, static_cast<Context*>(context));
  state().counters.contexts--;
  close(context->async_fd);
  delete static_cast<Context*>(context);
  return 0;
}

int query_device(ibv_context* context, ibv_device_attr* attributes) {
  const Lock lock(state().spin);
  const int error = enter(Call::query_device, context);
  if (error != 0) return error;
  const FakeDevice& facts = device_of(context)->facts;
  memset(attributes, 0, sizeof(*attributes));
  strcpy(attributes->fw_ver, "1.0.fake");  // NOLINT(clang-analyzer-security.insecureAPI.strcpy)
  attributes->node_guid = htobe64(facts.guid);
  attributes->sys_image_guid = htobe64(facts.guid);
  attributes->max_mr_size = UINT64_MAX;
  attributes->page_size_cap = 4096;
  attributes->max_qp = facts.max_qp;
  attributes->max_qp_wr = facts.max_qp_wr;
  attributes->max_sge = attributes->max_sge_rd = facts.max_sge;
  attributes->max_cq = 1 << 16;
  attributes->max_cqe = facts.max_cqe;
  attributes->max_mr = 1 << 24;
  attributes->max_pd = 1 << 16;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = facts.max_rd_atomic;
  attributes->phys_port_cnt = static_cast<uint8_t>(facts.ports.size());
  return 0;
}

int query_port(ibv_context* context, uint8_t number, ibv_port_attr* attributes) {
  const Lock lock(state().spin);
  const int error = enter(Call::query_port, context);
  if (error != 0) return error;
  const FakePort* port = port_of(context, number);
  if (port == nullptr) return EINVAL;
  memset(attributes, 0, sizeof(*attributes));
  attributes->state = port->state;
  attributes->max_mtu = IBV_MTU_4096;
  attributes->active_mtu = port->mtu;
  attributes->gid_tbl_len = static_cast<int>(port->gids.size()) + kEmptyGids;
  attributes->max_msg_sz = port->max_message;
  attributes->pkey_tbl_len = static_cast<uint16_t>(port->pkeys.size());
  attributes->lid = port->roce ? 0 : port->lid;
  attributes->active_width = static_cast<uint8_t>(port->width);
  attributes->active_speed = static_cast<uint8_t>(port->speed);
  attributes->phys_state = port->state == IBV_PORT_ACTIVE ? 5 : 3;
  attributes->link_layer = port->roce ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  return 0;
}

// Null: beyond the table, or empty.
const FakeGid* gid_at(ibv_context* context, uint8_t number, int index, bool* beyond) {
  const FakePort* port = port_of(context, number);
  const int size = port == nullptr ? 0 : static_cast<int>(port->gids.size());
  *beyond = port == nullptr || index < 0 || index >= size + kEmptyGids;
  return *beyond || index >= size ? nullptr : &port->gids[index];
}

int query_gid(ibv_context* context, uint8_t number, int index, ibv_gid* gid) {
  const Lock lock(state().spin);
  errno = enter(Call::query_gid, context);
  if (errno != 0) return -1;
  bool beyond = false;
  const FakeGid* found = gid_at(context, number, index, &beyond);
  if (beyond) {
    errno = EINVAL;
    return -1;
  }
  *gid = found == nullptr ? ibv_gid{} : found->gid;
  return 0;
}

int query_gid_version(ibv_context* context, uint8_t number, int index, int* version) {
  const Lock lock(state().spin);
  bool beyond = false;
  const FakeGid* found = gid_at(context, number, index, &beyond);
  if (found == nullptr) return beyond ? ENOENT : EINVAL;
  *version = found->version;
  return found->error;
}

int query_pkey(ibv_context* context, uint8_t number, int index, uint16_t* pkey) {
  const Lock lock(state().spin);
  const FakePort* port = port_of(context, number);
  if (port == nullptr || index < 0 || index >= static_cast<int>(port->pkeys.size())) {
    errno = EINVAL;
    return -1;
  }
  *pkey = htobe16(port->pkeys[index]);
  return 0;
}

int pci_path(ibv_device* device, char* path, size_t bytes) {
  const Lock lock(state().spin);
  const std::string& known = static_cast<Device*>(device)->facts.pci_path;
  if (known.empty() || known.size() >= bytes) return -1;
  memcpy(path, known.c_str(), known.size() + 1);
  return 0;
}

bool is_qp_event(ibv_event_type type) {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
         type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

void count_event(const ibv_async_event& event, int by) {
  if (is_qp_event(event.event_type)) static_cast<Qp*>(event.element.qp)->unacknowledged += by;
  if (event.event_type == IBV_EVENT_CQ_ERR) {
    static_cast<Cq*>(event.element.cq)->unacknowledged += by;
  }
}

int get_async_event(ibv_context* context, ibv_async_event* event) {
  for (;;) {
    uint64_t one = 0;
    if (read(context->async_fd, &one, sizeof(one)) < 0) return -1;
    const Lock lock(state().spin);
    auto& events = static_cast<Context*>(context)->events;
    if (events.empty()) continue;  // its object went meanwhile
    *event = events.front();
    events.pop_front();
    count_event(*event, 1);
    return 0;
  }
}

void ack_async_event(ibv_async_event* event) {
  const Lock lock(state().spin);
  count_event(*event, -1);
}

// Does `action` for the device and each context that has it open.
template <typename Action>
void for_contexts(const std::string& name, Action action) {
  for (Context* context : state().contexts) {
    if (context->owner->facts.name == name) action(context);
  }
}

void tell(const std::string& name, ibv_event_type type, int port) {
  for_contexts(name, [&](Context* context) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.port_num = port;
    post_event(context, event);
  });
}

Device* find_device(const std::string& name) {
  for (const auto& device : state().devices) {
    if (device->facts.name == name) return device.get();
  }
  abort();  // the test names a device that there is not
}

}  // namespace

void post_event(Context* context, const ibv_async_event& event) {
  context->events.push_back(event);
  signal_fd(context->async_fd);
}

void forget_events(Context* context, const void* element) {
  const size_t gone = std::erase_if(context->events, [&](const ibv_async_event& event) {
    return (is_qp_event(event.event_type) && event.element.qp == element) ||
           (event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == element);
  });
  for (size_t i = 0; i < gone; i++) drain_fd(context->async_fd);
}

void fill_devices(transport::verbs::Table* table) {
  table->get_device_list = get_device_list;
  table->free_device_list = free_device_list;
  table->get_device_name = get_device_name;
  table->open_device = open_device;
  table->close_device = close_device;
  table->query_device = query_device;
  table->query_port = query_port;
  table->query_gid = query_gid;
  table->query_gid_version = query_gid_version;
  table->query_pkey = query_pkey;
  table->pci_path = pci_path;
  table->get_async_event = get_async_event;
  table->ack_async_event = ack_async_event;
}

}  // namespace fake

using fake::Lock;
using fake::state;

void FakeVerbs::set_state(const std::string& device, int port, ibv_port_state to, bool event) {
  const Lock lock(state().spin);
  fake::find_device(device)->facts.ports.at(port - 1).state = to;
  if (event) {
    fake::tell(device, to == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, port);
  }
  if (!state().reordering) fake::deliver_all(false);
}

void FakeVerbs::set_gids(const std::string& device, int port, std::vector<FakeGid> gids,
                         bool event) {
  const Lock lock(state().spin);
  fake::find_device(device)->facts.ports.at(port - 1).gids = std::move(gids);
  if (event) fake::tell(device, IBV_EVENT_GID_CHANGE, port);
}

void FakeVerbs::remove_device(const std::string& device) {
  const Lock lock(state().spin);
  fake::find_device(device)->removed = true;
  fake::tell(device, IBV_EVENT_DEVICE_FATAL, 0);
  for (auto& [number, qp] : state().qps) {
    if (fake::device_of(qp->context)->facts.name == device) fake::fail_qp(qp, -1);
  }
}

void FakeVerbs::inject(const std::string& device, ibv_event_type type, int port) {
  const Lock lock(state().spin);
  fake::tell(device, type, port);
}

void FakeVerbs::fail_qp(uint32_t qp_number, ibv_event_type event) {
  const Lock lock(state().spin);
  fake::fail_qp(state().qps.at(qp_number), event);
}

}  // namespace bitrail::test
