// The ports that this process uses: opened once a context, with what was asked of the device.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/transport/transport.h"
#include "runtime/transport/verbs/gid.h"
#include "runtime/transport/verbs/options.h"
#include "runtime/transport/verbs/table.h"

namespace bitrail::transport::verbs {

class RegistrationCache;

// One port of one device.
struct Port {
  Port();
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::string name;  // "mlx5_0:1"
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  int number = 1;
  ibv_device_attr device_attributes{};
  ibv_port_attr attributes{};
  int gid_index = 0;
  ibv_gid gid{};
  bool roce = false;
  double speed_mbps = 0;
  bool dmabuf = false;            // VerbsMemory::create_dmabuf() works
  bool adaptive_routing = false;  // data and immediate apart above the threshold
  DeviceProperties properties;
  std::unique_ptr<RegistrationCache> registrations;

  // Set by the event thread, read by progress(): the port or the device is of no use now. A port
  // that comes back clears `down` (never `removed`), and its GID is read again before the next QP.
  std::atomic<bool> down{false}, removed{false}, gid_changed{false};
  std::atomic<uint32_t> fatal_events{0};  // counts; a change means: look at the QPs
};

// Opens every port that `options.hca` chooses and that is active, in PCI order. Empty: none usable,
// and *why says so for each device ("mlx5_0:1 is down").
Status open_ports(const IbOptions& options, std::vector<std::shared_ptr<Port>>* ports,
                  std::string* why);

// What was wanted, within what device and port have.
ibv_mtu clamp_mtu(const Port& port, ibv_mtu peer);
uint8_t clamp_reads(const Port& port, int wanted);         // RDMA reads outstanding
uint32_t clamp_depth(const Port& port, uint32_t wanted);   // work requests of one queue
int clamp_completions(const Port& port, uint64_t wanted);  // of one completion queue

// One line a port of this host for `bitrail info`, usable or not: "mlx5_0:1 active, 100 Gbit/s
// RoCE, GID 3 10.0.0.1". Devices that cannot be opened have a line too.
std::vector<std::string> describe_ports(const IbOptions& options);

// Reads attributes and GID again (after events). Fails naming the port.
Status refresh_port(const IbOptions& options, Port* port);

}  // namespace bitrail::transport::verbs
