#include "plugin/tuner/calls.h"

namespace bitrail::plugin::tuner::calls {
namespace {

using nccl::Result;

// Larger than any release's, so that a call of another version is noticed before it is followed.
constexpr int kMaxAlgorithms = 64, kMaxProtocols = 16;

Result start(const Communicator& communicator, nccl::Logger logger, void** context) {
  set_logger(logger);
  if (context == nullptr) return refuse("init", "tuner: no place for the context");
  return create(communicator, context);
}

}  // namespace

Result init(size_t ranks, size_t nodes, nccl::Logger logger, void** context) {
  return guarded("init", [&] { return start({ranks, nodes}, logger, context); });
}

Result init_with_constants(void** context, uint64_t /*comm_id*/, size_t ranks, size_t nodes,
                           nccl::Logger logger, nccl::NvlinkDomains* domains,
                           nccl::TunerConstants* constants) {
  return guarded("init", [&] {
    return start({ranks, nodes, domains, constants}, logger, context);
  });
}

Result get_coll_info(void* context, int function, size_t bytes, int pipe_ops, float** costs,
                     int algorithms, int protocols, int registered, int* channels) {
  return guarded("getCollInfo", [&] {
    const Tuner* tuner = find(context);
    if (tuner == nullptr) return refuse("getCollInfo", "unknown context");
    if (costs == nullptr || channels == nullptr) {
      return refuse("getCollInfo", "no cost table or no place for the channels");
    }
    if (algorithms < 1 || algorithms > kMaxAlgorithms || protocols < 1 ||
        protocols > kMaxProtocols) {
      return refuse("getCollInfo", "a table of {} algorithms and {} protocols", algorithms,
                    protocols);
    }
    // Declared as pointers, but one array.
    (void)tune(*tuner,
               {function, bytes, pipe_ops,
                registered == kAny ? kAny
                : registered != 0  ? 1
                                   : 0},
               reinterpret_cast<float*>(costs), algorithms, protocols, channels);
    return nccl::kSuccess;
  });
}

Result destroy(void* context) {
  return guarded("destroy", [&] {
    tuner::destroy(context);
    return nccl::kSuccess;
  });
}

}  // namespace bitrail::plugin::tuner::calls
