// Contexts in one process, connected in both directions and progressed by the test's thread.
//
// With TEST_OVER_VERBS the same suites run over transport verbs on the fake of libibverbs, with
// TEST_OVER_DEVICES on real (soft RoCE) devices: rxe0, rxe1, rxe2 in tests/lab/rdma-vm.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/transport/handle.h"
#include "runtime/transport/transport.h"
#ifdef TEST_OVER_VERBS
#include "tests/support/fake_verbs.h"
#endif

namespace bitrail::test {

// What the suites run over. `ucx_tls` empty: UCX's own choice.
struct Way {
  const char* name;
  const char* ucx_tls;
  double mbps, us;
  transport::verbs::IbOptions ib = {};
  uint64_t reordering = 0;  // seed; 0: in order
};

#ifdef TEST_OVER_VERBS
constexpr char kTransport[] = "verbs", kOtherTransport[] = "ucx";
constexpr transport::Kind kOtherKind = transport::Kind::ucx, kKind = transport::Kind::verbs;

inline std::vector<Way> ways() {
  transport::verbs::IbOptions one, turns, split;
  one.hca = "=mlx5_0";
  turns.hca = "=mlx5_0";
  turns.qps_per_connection = 3;
  split.qps_per_connection = 2;
  split.split_data = true;
  split.adaptive_routing = "on";
  return {{"verbs", "", 0, 0, one},
          {"verbs_turns", "", 0, 0, turns, 7},
          {"verbs_split_over_ports", "", 0, 0, split, 11},
          {"verbs_emulated", "", 20'000, 20, one}};
}

// Three devices of different speeds; checks at the end that nothing is left.
class World {
 public:
  World() {
    for (int i = 0; i < 3; i++) {
      FakeDevice device;
      device.name = "mlx5_" + std::to_string(i);
      device.ports[0].speed = i == 1 ? 64 : 32;
      fake_.add_device(device);
    }
  }
  ~World() { EXPECT_TRUE(fake_.counters().clean()); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  FakeVerbs& fake() { return fake_; }

 private:
  FakeVerbs fake_;
};
#elif defined(TEST_OVER_DEVICES)
constexpr char kTransport[] = "verbs", kOtherTransport[] = "ucx";
constexpr transport::Kind kOtherKind = transport::Kind::ucx, kKind = transport::Kind::verbs;

inline std::vector<Way> ways() {
  transport::verbs::IbOptions one, turns, split;
  one.hca = "=rxe0";
  turns.hca = "=rxe0,rxe1";
  turns.qps_per_connection = 3;
  split.qps_per_connection = 2;
  split.split_data = true;
  split.adaptive_routing = "on";
  return {{"verbs", "", 0, 0, one},
          {"verbs_turns", "", 0, 0, turns},
          {"verbs_split_over_ports", "", 0, 0, split}};
}

class World {
 public:
  World() {}  // NOLINT(modernize-use-equals-default): or it counts as unused
};
#else
constexpr char kTransport[] = "ucx", kOtherTransport[] = "verbs";
constexpr transport::Kind kOtherKind = transport::Kind::verbs, kKind = transport::Kind::ucx;

inline std::vector<Way> ways() {
  return {{"ucx", "", 0, 0},
          {"ucx_without_cma", "^cma", 0, 0},
          {"ucx_tcp", "tcp,self", 0, 0},
          {"ucx_shm", "posix,sysv,self", 0, 0},
          {"ucx_emulated", "", 20'000, 20}};
}

class World {
 public:
  World() {}  // NOLINT(modernize-use-equals-default): or it counts as unused
};
#endif

inline std::string way_name(const testing::TestParamInfo<Way>& way) { return way.param.name; }

inline transport::Options options_for(const Way& way, int rank) {
  transport::Options options;
  options.identity = {"a secret", "job " + std::to_string(getpid()), rank};
  options.bind_address = "127.0.0.1";
  options.link_mbps = way.mbps;
  options.link_us = way.us;
  options.ranks_per_node = 1;
  options.world_size = 2;
  options.ib = way.ib;
  return options;
}

// UCX reads its variables when a context is opened.
class TlsChoice {
 public:
  explicit TlsChoice(const char* ucx_tls) : set_(ucx_tls[0] != 0) {
    if (set_) setenv("UCX_TLS", ucx_tls, 1);
  }
  ~TlsChoice() {
    if (set_) unsetenv("UCX_TLS");
  }
  TlsChoice(const TlsChoice&) = delete;
  TlsChoice& operator=(const TlsChoice&) = delete;

 private:
  bool set_;
};

constexpr int64_t kPatienceMs = 60'000;  // only a hang takes this long

struct Side {
  std::unique_ptr<transport::Context> context;
  std::unique_ptr<transport::Listener> listener;
  std::unique_ptr<transport::Receiver> receiver;
  std::unique_ptr<transport::Sender> sender;
  transport::Handle handle;
  transport::Peer peer;  // as accept() told
  int device = 0;        // that its sender uses
};

struct Pair {
  explicit Pair(const Way& way) {
#ifdef TEST_OVER_VERBS
    if (way.reordering != 0) world.fake().set_reordering(way.reordering);
#endif
    const TlsChoice choice(way.ucx_tls);
    for (int rank = 0; rank < 2; rank++) {
      Side& side = sides[rank];
      const Status opened = transport::open(kTransport, options_for(way, rank), &side.context);
      EXPECT_TRUE(opened.ok()) << opened.text();
      if (!opened.ok()) return;
      const Status listening = side.context->listen(0, &side.handle, &side.listener);
      EXPECT_TRUE(listening.ok()) << listening.text();
    }
    connect();
  }

  // Each closes with the other's help, as ranks do.
  ~Pair() {
    std::thread other([this] { sides[1].context.reset(); });
    sides[0].context.reset();
    other.join();
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  Side& a() { return sides[0]; }
  Side& b() { return sides[1]; }

  void connect() {
    std::unique_ptr<transport::Context::Connecting> pending[2];
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    auto complete = [](const Side& side) { return side.sender && side.receiver; };
    while (!complete(sides[0]) || !complete(sides[1])) {
      ASSERT_FALSE(deadline.passed()) << "set-up hangs";
      for (int i = 0; i < 2; i++) {
        Side& side = sides[i];
        if (side.sender == nullptr) {
          const Status status = side.context->connect(side.device, sides[1 - i].handle, {1 - i},
                                                      deadline, &pending[i], &side.sender);
          ASSERT_TRUE(status.ok()) << status.text();
        }
        if (side.receiver == nullptr) {
          const Status status = side.listener->accept(&side.receiver, &side.peer);
          ASSERT_TRUE(status.ok()) << status.text();
        }
        side.context->progress();
      }
    }
  }

  // False when `done` does not come true.
  template <typename Done>
  bool pump(Done done) {
    const Deadline deadline = Deadline::in_ms(kPatienceMs);
    while (!done()) {
      if (deadline.passed()) return false;
      for (Side& side : sides) {
        if (side.context != nullptr) side.context->progress();
      }
    }
    return true;
  }

  World world;
  Side sides[2];
};

inline std::vector<uint8_t> pattern(size_t bytes, uint64_t seed) {
  std::vector<uint8_t> data(bytes);
  uint64_t state = seed * 0x9e3779b97f4a7c15ULL + 1;
  for (uint8_t& byte : data) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<uint8_t>(state >> 56);
  }
  return data;
}

// isend and irecv that insist.
inline void send(transport::Sender* sender, const void* data, size_t bytes, uint64_t tag,
                 uint32_t cookie, transport::Request* request) {
  bool accepted = false;
  const Status status = sender->isend(data, bytes, tag, cookie, nullptr, request, &accepted);
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_TRUE(accepted);
}

inline void receive(transport::Receiver* receiver, void* data, size_t bytes, uint64_t tag,
                    transport::Request* request) {
  transport::Buffer buffer;
  buffer.data = data;
  buffer.bytes = bytes;
  buffer.tag = tag;
  bool accepted = false;
  const Status status = receiver->irecv(1, &buffer, request, &accepted);
  ASSERT_TRUE(status.ok()) << status.text();
  ASSERT_TRUE(accepted);
}

}  // namespace bitrail::test
