// The one interface to the network. UCX, verbs and the link emulation implement it; the engine and
// the NCCL plugin (whose net API maps onto it call by call) use it.
//
// Rules
// - Nothing blocks. connect() and accept() are polled: OK with a null result means "call again".
// - A Context is one progress domain: all its work happens inside progress(), on the thread that
// calls it. Calls on a
//   context and on what it made are serialised by the caller (a lock or one thread). Different
//   contexts are independent.
// - A Sender/Receiver pair is one direction. Messages match by tag; equal tags match in posting
// order.
// - Truncation: a message shorter than its receive is fine (Request::received tells); a longer one
// is an error at the
//   receiver (BITRAIL_ERR_MISMATCH), the buffer stays untouched, the connection stays usable. Zero
//   bytes are a message.
// - Requests belong to the caller, must not move while pending, and are written only inside
// progress() or the call itself.
// - Destroying a Receiver or its Context ends all writes into receive buffers before it returns;
// the pending requests are
//   completed with BITRAIL_ERR_ABORTED.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/common/clock.h"
#include "runtime/common/status.h"
#include "runtime/transport/verbs/options.h"

namespace bitrail::transport {

enum MemoryType : uint32_t { kHost = 1, kCuda = 2, kDmaBuf = 4 };  // bits, as NCCL's ptrSupport

struct DeviceProperties {
  std::string name;      // "tcp+sysv", "mlx5_0:1"
  std::string pci_path;  // sysfs path, empty when there is none
  uint64_t guid = 0;     // distinct per physical port together with `port`
  int port = 0;
  int numa_node = -1;     // -1 unknown
  double speed_mbps = 0;  // megabits a second
  double latency_us = 0;  // one way
  uint32_t memory_types = kHost;
  int max_grouped_receives = 8;  // buffers in one irecv
  size_t max_message_bytes = 0;
  bool registration_is_global = false;  // one registration serves all connections of the context
  // Long ones whose memory is not registered, for their time. register_memory() and the end of what
  // it made are then for any thread.
  bool registers_messages = false;
};

// What a listener hands to its peers through any channel. Travels by value; the bytes come from the
// network, so connect() checks magic, version and transport before it believes them.
struct Handle {
  std::array<uint8_t, 128> bytes{};
};

// Who is at the other end, for messages and for the link emulation. -1 when unknown.
struct Peer {
  int rank = -1;
};

// Proves the job's secret on a connection's side channel; see bootstrap/proof.h.
struct Identity {
  std::string secret;
  std::string job_id;
  int rank = -1;
};

class Memory;  // a registration

struct Buffer {
  void* data = nullptr;
  size_t bytes = 0;
  uint64_t tag = 0;
  Memory* memory = nullptr;  // may be null where the transport needs none
};

constexpr int kMaxGroupedReceives = 8;
constexpr size_t kMaxCombined = 4;  // devices

// One isend or irecv in flight.
struct Request {
  bool done = true;
  bitrail_status_t status = BITRAIL_OK;       // valid once done
  std::string text;                           // why it failed
  size_t received[kMaxGroupedReceives] = {};  // bytes that arrived, in the irecv's order
  uint32_t cookie = 0;                        // receive: the sender's cookie (of the last buffer)
  // Called from progress() (or from the posting call) when done turned true; may be null. Must not
  // destroy connections.
  void (*on_done)(Request*) = nullptr;
  void* user = nullptr;
  void* transport_state = nullptr;  // the transport's own
};

class Memory {
 public:
  virtual ~Memory() = default;
};

class Sender {
 public:
  virtual ~Sender() = default;
  // *accepted false: no room now, call again with the same arguments. `cookie` travels with the
  // message.
  virtual Status isend(const void* data, size_t bytes, uint64_t tag, uint32_t cookie,
                       Memory* memory, Request* request, bool* accepted) = 0;
  virtual std::string peer_address() const = 0;
};

// A message that arrived before anybody wanted it.
struct Unexpected {
  uint64_t tag;
  uint32_t cookie;
  size_t bytes;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // `count` receives complete as one request (all filled). *accepted as in isend.
  virtual Status irecv(int count, const Buffer* buffers, Request* request, bool* accepted) = 0;
  // Makes earlier receives into device memory visible to the device. Done at once for host memory.
  virtual Status flush(int count, const Buffer* buffers, Request* request) = 0;
  virtual std::vector<Unexpected> unexpected() const = 0;
  virtual std::string peer_address() const = 0;
};

class Listener {
 public:
  virtual ~Listener() = default;
  // *receiver null: nobody completed set-up yet. `peer` tells who it is (rank as it proved it).
  virtual Status accept(std::unique_ptr<Receiver>* receiver, Peer* peer) = 0;
};

class Context {
 public:
  virtual ~Context() = default;
  virtual const char* name() const = 0;  // "ucx", "ucx+emulated"
  virtual int devices() const = 0;
  virtual const DeviceProperties& device(int index) const = 0;
  // A number for listen() and connect() that stands for these devices and no other: each connection
  // uses all of them. The same devices in the same order give the same number.
  virtual Status combine(const std::vector<int>& parts, int* device) {
    if (parts.size() == 1 && parts[0] >= 0 && parts[0] < devices()) {
      *device = parts[0];
      return {};
    }
    return failure(BITRAIL_ERR_UNSUPPORTED, "transport {} does not combine devices", name());
  }

  virtual Status listen(int device, Handle* handle, std::unique_ptr<Listener>* listener) = 0;
  // Polled with the same handle until *sender is set. `pending` holds the set-up's state between
  // polls: start it null; dropping it gives the set-up up. `deadline` bounds the whole set-up.
  class Connecting {
   public:
    virtual ~Connecting() = default;
  };
  virtual Status connect(int device, const Handle& handle, const Peer& peer, Deadline deadline,
                         std::unique_ptr<Connecting>* pending, std::unique_ptr<Sender>* sender) = 0;

  virtual Status register_memory(void* data, size_t bytes, MemoryType type,
                                 std::unique_ptr<Memory>* memory) = 0;

  // Moves everything forward; the number of things that happened (0: nothing to do now).
  virtual int progress() = 0;
  // Readable when progress() has something to do, after arm() said so.
  virtual int event_fd() const = 0;
  // *idle true: it is safe to sleep on event_fd() until it is readable or next_timer_ns() is
  // reached. False: progress() first.
  virtual Status arm(bool* idle) = 0;
  // Absolute now_ns() time at which progress() is wanted even without an event; INT64_MAX for none.
  virtual int64_t next_timer_ns() const { return INT64_MAX; }
};

struct Options {
  Identity identity;
  std::string
      bind_address;  // address that listeners offer to peers; empty: chosen from the interfaces
  // Link emulation; see emulated/. 0 Mbit/s and 0 us: none.
  double link_mbps = 0;
  double link_us = 0;
  int ranks_per_node = 1;
  int world_size = 1;
  verbs::IbOptions ib;
};

// `name` is "auto", "ucx" or "verbs". auto takes verbs where a usable port exists, ucx otherwise.
// Failing names what is missing.
Status open(const std::string& name, const Options& options, std::unique_ptr<Context>* context);

// One line per transport for `bitrail info`: available or why not.
struct Availability {
  std::string name;
  bool available;
  std::string detail;
};
std::vector<Availability> available();
// One line for each port that verbs might use: what it is, or why it is of no use.
std::vector<std::string> verbs_ports(const Options& options);

}  // namespace bitrail::transport
