// The fake's objects. All of it is used under the one lock.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>

#include "tests/support/fake_verbs.h"

namespace bitrail::test::fake {

constexpr int kMaxSge = 8;

// A lock that the C library does not know of, so that tests may count those of the product.
class Spin {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

struct Device : ibv_device {
  Device() : ibv_device{} {}
  FakeDevice facts;
  bool removed = false;
};

struct Context : ibv_context {
  Context() : ibv_context{} {}
  Device* owner = nullptr;
  std::deque<ibv_async_event> events;  // async_fd counts them
};

struct Pd : ibv_pd {
  Pd() : ibv_pd{} {}
  int users = 0;
};

struct Mr : ibv_mr {
  Mr() : ibv_mr{} {}
  int access = 0;
  bool with_iova = false;
  uint64_t order = 0;
};

struct Cq;

struct Channel : ibv_comp_channel {
  Channel() : ibv_comp_channel{} {}
  std::deque<Cq*> events;  // fd counts them
};

struct Completion {
  ibv_wc wc;
  uint64_t slot;  // of its queue: all up to it are free once it was polled
  bool receive;
};

struct Qp;

struct Cq : ibv_cq {
  Cq() : ibv_cq{} {}
  std::vector<Completion> ring;
  size_t first = 0, used = 0;
  enum Armed { no, solicited, any } armed = no;
  bool overrun = false;
  int users = 0, unacknowledged = 0;
};

struct SendWork {
  ibv_send_wr wr;
  std::array<ibv_sge, kMaxSge> sges;
  std::vector<uint8_t> inlined;  // room for it, made with the queue pair
  size_t bytes = 0;
  bool scattered = false;  // reordering: its packets are among those on their way
};

struct RecvWork {
  uint64_t wr_id;
  int count;
  std::array<ibv_sge, kMaxSge> sges;
};

// A part of a write that has not landed.
struct Packet {
  uint64_t slot;
  size_t offset, bytes;
};

struct Qp : ibv_qp {
  Qp() : ibv_qp{} {}
  ibv_qp_attr attr{};
  ibv_qp_cap cap{};
  bool all_signaled = false;
  // Slots count up from 0; queue[slot % size]. freed <= next <= posted.
  std::vector<SendWork> sends;
  uint64_t send_posted = 0, send_next = 0, send_freed = 0;
  std::vector<RecvWork> receives;
  uint64_t receive_posted = 0, receive_next = 0, receive_freed = 0;
  std::vector<Packet> packets;
  int64_t waiting_since = 0;  // 0: not
  bool waiting_for_receive = false;
  bool queued = false;  // in State::busy
  int unacknowledged = 0;
};

struct Failure {
  int error = 0, count = 0, skip = 0;
};

struct State {
  Spin spin;
  transport::verbs::Table table{};
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<Context*> contexts;
  std::vector<Pd*> pds;
  std::unordered_map<uint32_t, Mr*> by_lkey, by_rkey;
  std::vector<Channel*> channels;
  std::vector<Cq*> cqs;
  std::unordered_map<uint32_t, Qp*> qps;
  std::vector<Qp*> busy;  // with work that could not be delivered yet
  FakeCounters counters;
  Failure failures[static_cast<int>(Call::count)];
  int64_t retry_ns = -1;
  bool reordering = false;
  std::mt19937_64 random;
  uint32_t next_key = 1, next_qp = 0x100;
  uint64_t registered = 0;
  bool registered_any = false;
};

extern State* g_state;
using Lock = std::lock_guard<Spin>;
inline State& state() { return *g_state; }
inline Device* device_of(const ibv_context* context) {
  return static_cast<const Context*>(context)->owner;
}

// Counts the call; the errno it shall fail with, 0 for none.
int enter(Call call, const ibv_context* context);
FakePort* port_of(const ibv_context* context, int port);  // null: no such port

void post_event(Context* context, const ibv_async_event& event);
void forget_events(Context* context, const void* element);
void signal_fd(int fd);
void drain_fd(int fd);

void complete(Cq* cq, const ibv_wc& wc, uint64_t slot, bool receive, bool solicited);
// Error state: everything outstanding is flushed. The event may be absent (-1).
void fail_qp(Qp* qp, int event);
void complete_send(Qp* qp, ibv_wc_status status);
void complete_receive(Qp* qp, ibv_wc_status status, const ibv_wc& facts, bool solicited);
void flush_send(Qp* qp);
void flush_receive(Qp* qp);

// Delivers what the queue pair has; what cannot go now is remembered in State::busy.
void deliver(Qp* qp);
void deliver_all(bool everything);

// Null: no such key for these bytes.
const Mr* find_local(const ibv_pd* pd, uint32_t lkey, uint64_t address, size_t bytes, int access);
const Mr* find_remote(const ibv_pd* pd, uint32_t rkey, uint64_t address, size_t bytes, int access);

void fill_devices(transport::verbs::Table* table);
void fill_memory(transport::verbs::Table* table);
void fill_completions(transport::verbs::Table* table);
void fill_queue_pairs(transport::verbs::Table* table);

}  // namespace bitrail::test::fake
