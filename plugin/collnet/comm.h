// What listen() and connect() give to NCCL, and their requests.
#pragma once

#include <bitrail/bitrail.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

#include "plugin/collnet/join.h"
#include "plugin/collnet/states.h"
#include "plugin/common/shells.h"

namespace bitrail::plugin::collnet {

enum class Kind : uint32_t { closed, listening, joined };

struct Comm;

// A registration, NCCL's mhandle.
struct Memory {
  Comm* comm = nullptr;
  std::byte* data = nullptr;
  size_t bytes = 0;
  // NCCL's own buffers: what it registers first on a comm. Slots in there hold whatever is sent
  // next, with stale tails; anything else is a user's buffer.
  bool staging = false;
};

struct Request {
  bool used = false;
  Comm* comm = nullptr;
  size_t bytes = 0;                      // to tell
  std::vector<bitrail_request_t> parts;  // calls of the library that have not ended
  Status failed;                         // of a part that has
  const Memory* memory[2] = {};          // in use until the end
  // A 1-bit call: its arguments, and what the consumer needs.
  bool compressed = false;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  bitrail_type_t type = BITRAIL_FLOAT32;
  float factor = 1;
  // A reduce-scatter: the whole window, and which part of it goes where.
  std::vector<std::byte> scratch;
  size_t begin = 0, length = 0;
};

struct Comm {
  std::atomic<Kind> kind{Kind::closed};
  Instance* instance = nullptr;

  // Listening.
  Meeting meeting;
  bootstrap::UniqueFd port;  // empty after connect()

  // Joined. The library's communicators are one thread's at a time.
  std::mutex mutex;
  Mode mode = Mode::off;
  int rank = 0, ranks = 0;
  bitrail_comm_t handle = nullptr;
  Request requests[nccl::kMaxRequests];
  const Request* compressing =
      nullptr;  // nothing starts behind a call that may have to be repeated
  std::vector<std::unique_ptr<Memory>> memory;
  const std::byte* staging = nullptr;  // see Memory::staging
  size_t staging_bytes = 0;
  States states;
};

Comm* open_comm(Kind kind, Instance* instance);
// Ends what is in flight, on all ranks; the requests are gone.
void close_comm(Comm* comm);

// Null when `pointer` is null or not an open comm of this kind.
inline Comm* as(void* pointer, Kind kind) { return open_as<Comm>(pointer, kind); }

// With the mutex held: an unused request; null when all are in use.
Request* take_request(Comm* comm);
void give_back(Request* request);

// The status of a call of the library, with its text.
Status said(bitrail_status_t code);

// With the mutex held: null when `memory` is no registration of this comm.
const Memory* find_memory(const Comm* comm, const void* memory);

}  // namespace bitrail::plugin::collnet
