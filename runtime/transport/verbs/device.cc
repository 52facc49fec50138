#include "runtime/transport/verbs/device.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <tuple>

#include "runtime/transport/verbs/errors.h"
#include "runtime/transport/verbs/fork.h"
#include "runtime/transport/verbs/memory.h"
#include "runtime/transport/verbs/properties.h"
#include "runtime/transport/verbs/select.h"

namespace bitrail::transport::verbs {
namespace {

struct DeviceList {
  ~DeviceList() {
    if (list != nullptr) table().free_device_list(list);
  }
  ibv_device** list = nullptr;
  int count = 0;
};

// Numbers by their value, so that mlx5_2 comes before mlx5_10.
std::string natural(const std::string& name) {
  std::string key;
  for (size_t i = 0; i < name.size();) {
    size_t digits = 0;
    while (i + digits < name.size() && name[i + digits] >= '0' && name[i + digits] <= '9') digits++;
    if (digits == 0) {
      key += name[i++];
      continue;
    }
    key.append(digits < 10 ? 10 - digits : 0, '0').append(name, i, digits);
    i += digits;
  }
  return key;
}

// PCI order ("0000:3b:00.1" is of fixed width below one domain); devices that have no place on
// PCI come last.
std::vector<ibv_device*> in_order(const DeviceList& devices) {
  using Key = std::tuple<bool, std::string, std::string>;
  std::vector<std::pair<Key, ibv_device*>> keyed;
  for (int i = 0; i < devices.count; i++) {
    const std::string path = pci_path(devices.list[i]);
    const std::string place = path.substr(path.find_last_of('/') + 1);
    keyed.emplace_back(
        Key{path.empty(), natural(place), natural(table().get_device_name(devices.list[i]))},
        devices.list[i]);
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<ibv_device*> ordered;
  ordered.reserve(keyed.size());
  for (const auto& [key, device] : keyed) ordered.push_back(device);
  return ordered;
}

Status failed(const Port& port, const char* call, int error) {
  return failure(BITRAIL_ERR_SYSTEM, "{}: {}", port.name, errno_text(call, error));
}

Status read_pkey(const IbOptions& options, const Port& port) {
  uint16_t pkey = 0;
  const bool known = table().query_pkey(port.context, static_cast<uint8_t>(port.number),
                                        static_cast<int>(options.pkey_index), &pkey) == 0;
  if (known && (be16toh(pkey) & 0x7fff) != 0) return {};
  return failure(BITRAIL_ERR_CONFIG, "{} has no partition key at index {} (BITRAIL_IB_PKEY)",
                 port.name, options.pkey_index);
}

Status read_address(const IbOptions& options, Port* port) {
  std::vector<GidEntry> entries;
  BITRAIL_TRY(read_gids(port->context, port->number, port->attributes.gid_tbl_len, &entries));
  GidEntry chosen;
  BITRAIL_TRY(choose_gid(port->name, port->roce, entries, options, &chosen));
  port->gid_index = chosen.index;
  port->gid = chosen.gid;
  return {};
}

Status read_attributes(Port* port) {
  const auto number = static_cast<uint8_t>(port->number);
  const int error = table().query_port(port->context, number, &port->attributes);
  if (error != 0) return failed(*port, "ibv_query_port", error);
  if (port->attributes.state != IBV_PORT_ACTIVE) {
    return failure(BITRAIL_ERR_SYSTEM, "{} is {}", port->name,
                   port_state_name(port->attributes.state));
  }
  return {};
}

// The context of `port` is open. Fails with the reason why the port is of no use.
Status fill_port(const IbOptions& options, Port* port) {
  BITRAIL_TRY(read_attributes(port));
  port->roce = port->attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
  BITRAIL_TRY(read_pkey(options, *port));
  BITRAIL_TRY(read_address(options, port));
  port->pd = table().alloc_pd(port->context);
  if (port->pd == nullptr) return failed(*port, "ibv_alloc_pd", errno);
  port->adaptive_routing =
      options.adaptive_routing == "on" || (options.adaptive_routing == "auto" && !port->roce);
  describe(port);
  port->registrations = std::make_unique<RegistrationCache>(port, options);
  return {};
}

Status open_context(ibv_device* device, int number, Port* port) {
  port->name = fmt::format("{}:{}", table().get_device_name(device), number);
  port->number = number;
  port->context = table().open_device(device);
  if (port->context == nullptr) return failed(*port, "ibv_open_device", errno);
  const int error = table().query_device(port->context, &port->device_attributes);
  if (error != 0) return failed(*port, "ibv_query_device", error);
  return {};
}

// Calls `opened(port)` for each selected port that is usable, `refused(text)` for the others.
template <typename Opened, typename Refused>
void open_device(const IbOptions& options, const HcaList& wanted, ibv_device* device, Opened opened,
                 Refused refused) {
  const std::string name = table().get_device_name(device);
  if (!may_select(wanted, name)) return refused(name + " is not in BITRAIL_IB_HCA");
  if (device->transport_type != IBV_TRANSPORT_IB) {
    return refused(name + " is neither InfiniBand nor RoCE");
  }
  int ports = 1;  // known once the device is open
  for (int number = 1; number <= ports; number++) {
    auto port = std::make_shared<Port>();
    // A device of two ports is opened twice: each has its own events.
    Status status = open_context(device, number, port.get());
    if (status.ok()) ports = std::max<int>(port->device_attributes.phys_port_cnt, 1);
    if (status.ok() && !selects(wanted, name, number)) {
      refused(port->name + " is not in BITRAIL_IB_HCA");
      continue;
    }
    if (status.ok()) status = fill_port(options, port.get());
    if (status.ok()) {
      opened(std::move(port));
    } else {
      refused(status.text());
    }
  }
}

// `none(text)` where there is no device at all.
template <typename Opened, typename Refused>
Status each_port(const IbOptions& options, Opened opened, Refused refused) {
  HcaList wanted;
  BITRAIL_TRY(parse_hca_list(options.hca, &wanted));
  AddressRange range;
  BITRAIL_TRY(parse_range(options.address_range, &range));
  prepare_fork();
  DeviceList devices;
  devices.list = table().get_device_list(&devices.count);
  if (devices.list == nullptr) {
    refused(errno_text("ibv_get_device_list", errno));
    return {};
  }
  if (devices.count == 0) {
    refused("this host has no RDMA device (see /sys/class/infiniband, and the drivers' packages)");
  }
  for (ibv_device* device : in_order(devices)) {
    open_device(options, wanted, device, opened, refused);
  }
  return {};
}

}  // namespace

Port::Port() = default;

Port::~Port() {
  registrations.reset();
  if (pd != nullptr) table().dealloc_pd(pd);
  if (context != nullptr) table().close_device(context);
}

Status open_ports(const IbOptions& options, std::vector<std::shared_ptr<Port>>* ports,
                  std::string* why) {
  ports->clear();
  why->clear();
  return each_port(
      options, [&](std::shared_ptr<Port> port) { ports->push_back(std::move(port)); },
      [&](const std::string& text) { *why += (why->empty() ? "" : "; ") + text; });
}

std::vector<std::string> describe_ports(const IbOptions& options) {
  std::vector<std::string> lines;
  const Status status = each_port(
      options,
      [&](const std::shared_ptr<Port>& port) {
        lines.push_back(fmt::format("{} active, {:g} Gbit/s {}, GID {} {}", port->name,
                                    port->speed_mbps / 1000, port->roce ? "RoCE" : "InfiniBand",
                                    port->gid_index, gid_text(port->gid)));
      },
      [&](const std::string& text) { lines.push_back(text); });
  if (!status.ok()) lines.push_back(status.text());
  return lines;
}

Status refresh_port(const IbOptions& options, Port* port) {
  if (port->removed) return failure(BITRAIL_ERR_SYSTEM, "{}: the device was removed", port->name);
  // First, so that a change meanwhile is seen again.
  port->gid_changed = false;
  Status status = read_attributes(port);
  if (status.ok()) status = read_pkey(options, *port);
  if (status.ok()) status = read_address(options, port);
  if (!status.ok()) {
    port->gid_changed = true;
    return status;
  }
  port->speed_mbps = port_speed_mbps(port->attributes.active_width, port->attributes.active_speed);
  port->properties.speed_mbps = port->speed_mbps;
  return {};
}

ibv_mtu clamp_mtu(const Port& port, ibv_mtu peer) {
  return std::max(std::min(port.attributes.active_mtu, peer), IBV_MTU_256);
}

uint8_t clamp_reads(const Port& port, int wanted) {
  const int most =
      std::min(port.device_attributes.max_qp_rd_atom, port.device_attributes.max_qp_init_rd_atom);
  return static_cast<uint8_t>(std::clamp(std::min(wanted, most), 0, 255));
}

uint32_t clamp_depth(const Port& port, uint32_t wanted) {
  const int most = port.device_attributes.max_qp_wr;
  return most > 0 ? std::min(wanted, static_cast<uint32_t>(most)) : wanted;
}

int clamp_completions(const Port& port, uint64_t wanted) {
  const int most = port.device_attributes.max_cqe > 0 ? port.device_attributes.max_cqe : 1 << 16;
  return static_cast<int>(std::min<uint64_t>(std::max<uint64_t>(wanted, 1), most));
}

}  // namespace bitrail::transport::verbs
