// What NCCL and a net plugin say to each other, whatever the version: codes, constants, callbacks.
// Interface facts, written from NCCL's sources for x86-64 and Arm (LP64).
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::nccl {

enum Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

inline constexpr size_t kHandleBytes = 128;
inline constexpr int kMaxRequests = 32;                      // for each receive of a group
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;  // test() tells sizes as int
inline constexpr size_t kMaxCollectiveBytes = size_t{1}
                                              << 29;  // as NCCL's shims say for old tables
inline constexpr int kUndefined = -1;                 // traffic class, rail and plane

// *request on entry to irecv may be this: nobody wants to be told when the data came.
inline constexpr uintptr_t kOptionalReceiveCompletion = 0x1;

enum PointerSupport : int { kPointerHost = 1, kPointerCuda = 2, kPointerDmaBuf = 4 };

enum LogLevel : int {
  kLogNone = 0,
  kLogVersion = 1,
  kLogWarn = 2,
  kLogInfo = 3,
  kLogAbort = 4,
  kLogTrace = 5,
};
inline constexpr unsigned long kLogInit = 0x1, kLogNet = 0x10;
using Logger = void (*)(LogLevel level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

enum ProfilerEvent : int {
  kProfilerStart = 0,
  kProfilerStop = 1,
  kProfilerUpdate = 2,
  kProfilerUpdateAndStop = 3,
};
using ProfilerCallback = Result (*)(void** event, int type, void* parent, int64_t plugin_id,
                                    void* data);

// What the events of sockets carry, version 1; id = transport << 16 | version.
inline constexpr int64_t kProfilerSocketId = 2 << 16 | 1;
struct ProfilerSocketEvent {
  uint8_t type;   // 1: socket
  int fd;         // -1: not one descriptor
  int operation;  // 0 send, 1 receive
  size_t length;
};
static_assert(sizeof(ProfilerSocketEvent) == 24);

// The network device that kernels could drive; this plugin has none (type host).
enum NetDeviceType : int { kNetDeviceHost = 0 };
struct NetDeviceHandle {
  NetDeviceType type;
  int version;
  void* handle;
  size_t size;
  int needs_proxy_progress;
};
static_assert(sizeof(NetDeviceHandle) == 32 && offsetof(NetDeviceHandle, size) == 16);

struct CommConfig {
  int traffic_class;  // kUndefined: the user gave none
};
static_assert(sizeof(CommConfig) == 4);

struct PeerAttributes {
  int32_t max_concurrent_peers, min_concurrent_peers, max_flows_per_peer, min_flows_per_peer;
};
struct NetAttributes {
  PeerAttributes send, receive;
  uint32_t operations, algorithms, protocols;  // bit masks
};
static_assert(sizeof(NetAttributes) == 44);

}  // namespace bitrail::nccl
