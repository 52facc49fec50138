// A fake of libibverbs: any number of devices in one process, with reliable connections between the
// queue pairs made in it. It shows what soft RoCE cannot: several ports, events, GID changes,
// removed devices, errors of each call, reordering.
//
// What is checked is what hardware or kernel check: transitions and masks of modify_qp, keys and
// bounds of each access, depths of queues and of completion queues (slots of unsignaled work are
// free again only when a later completion was polled). What a failed completion leaves undefined is
// filled with nonsense. Everything moves inside the calls, on the caller's thread, and any thread
// may call. No allocation, lock of the C library or system call on the message path.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/transport/verbs/table.h"

namespace bitrail::test {

struct FakeGid {
  ibv_gid gid{};
  int version = 2;
  int error = 0;  // errno of query_gid_version, as a container's sysfs gives EINVAL
};
// "10.0.0.1" (mapped), "fe80::1", "2001:db8::1".
FakeGid fake_gid(const std::string& text, int version = 2);

struct FakePort {
  ibv_port_state state = IBV_PORT_ACTIVE;
  bool roce = true;
  ibv_mtu mtu = IBV_MTU_4096;
  int width = 2, speed = 32;  // as in ibv_port_attr: 4 lanes of 25 Gbit/s
  uint16_t lid = 0;
  uint32_t max_message = 1U << 30;
  std::vector<FakeGid>
      gids;  // empty: add_device() makes a link-local one and an IPv4 one, v1 and v2
  std::vector<uint16_t> pkeys = {0xffff};
};

struct FakeDevice {
  std::string name;
  std::string pci_path;  // empty: the device has none
  uint64_t guid = 0;     // 0: add_device() makes one
  std::vector<FakePort> ports = std::vector<FakePort>(1);
  int max_rd_atomic = 16, max_qp_wr = 8192, max_sge = 8, max_cqe = 1 << 16, max_qp = 1 << 16;
  uint32_t max_inline = 220;
  bool dmabuf = true;
  uint64_t max_locked = UINT64_MAX;  // bytes that may be registered; more gives ENOMEM
};

enum class Call {
  open_device,
  query_device,
  query_port,
  query_gid,
  alloc_pd,
  reg_mr,
  reg_dmabuf_mr,
  create_channel,
  create_cq,
  req_notify_cq,
  create_qp,
  modify_qp,
  post_send,
  post_recv,
  fork_init,
  count
};

// What there is and what happened.
struct FakeCounters {
  int contexts = 0, pds = 0, mrs = 0, channels = 0, cqs = 0, qps = 0;  // alive
  uint64_t calls[static_cast<int>(Call::count)] = {};
  uint64_t peak_mrs = 0, locked_bytes = 0;
  uint64_t overruns = 0;  // completions that found their queue full
  uint64_t stuck = 0;     // destroyed while events were not acknowledged, or others used it
  uint64_t delivered = 0, delivered_bytes = 0, waits_for_receive = 0;
  uint64_t notifications = 0;  // completion channel events
  // Nothing is alive and nothing went wrong.
  bool clean() const;
};

struct FakeRegistration {
  uint64_t address, bytes;
  int access;
  bool with_iova;  // by reg_mr_iova2
};

// One at a time; replaces the transport's table while it lives. Contexts must be closed before it
// goes; what is left then is counted and freed.
class FakeVerbs {
 public:
  FakeVerbs();
  ~FakeVerbs();
  FakeVerbs(const FakeVerbs&) = delete;
  FakeVerbs& operator=(const FakeVerbs&) = delete;

  // The functions, to change before anything is opened (a null reg_mr_iova2, a wrapper).
  transport::verbs::Table& table();

  void add_device(FakeDevice device);
  FakeCounters counters() const;
  std::vector<FakeRegistration> registrations() const;  // alive, in order of registration

  // The next `count` calls after `skip` good ones fail with `error`.
  void fail(Call call, int error, int count = 1, int skip = 0);

  // Changes a port and tells every context that has the device open (unless !event).
  void set_state(const std::string& device, int port, ibv_port_state state, bool event = true);
  void set_gids(const std::string& device, int port, std::vector<FakeGid> gids, bool event = true);
  // The device is gone: its queue pairs fail, its calls give ENODEV, the list lacks it.
  void remove_device(const std::string& device);
  void inject(const std::string& device, ibv_event_type type, int port = 1);
  // The queue pair fails as hardware lets it: error state, flushed work and the event.
  void fail_qp(uint32_t qp_number, ibv_event_type event = IBV_EVENT_QP_FATAL);

  // Time until a packet without an answer fails its queue pair. Negative (the default): what the
  // queue pair's timeout and retry count say. Counted while somebody polls.
  void set_retry_ns(int64_t ns);
  // All that waits for a port or a receive fails now, but for endless receive retries.
  void expire_retries();

  // From now on the data of writes lands packet by packet, late, in random order, also over the
  // borders of work requests; queue pairs move in random order. Completions keep the order of
  // their queue pair and come after all data before them. Sources are read late as well.
  void set_reordering(uint64_t seed);
};

}  // namespace bitrail::test
