// What init() gives: a communicator's use of the plugin (table versions 11 and later), or the whole
// process's (older versions, which have no contexts).
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "plugin/abi/types.h"
#include "plugin/net/domain.h"
#include "runtime/config/settings.h"
#include "runtime/transport/transport.h"

namespace bitrail::plugin {

struct Comm;
struct Registration;

// A connect() that NCCL polls. Known by the address of the handle, which is the same at each poll.
struct Pending {
  Domain* domain = nullptr;
  int device = 0;
  transport::Handle handle;
  std::unique_ptr<transport::Context::Connecting> state;
  Deadline deadline;
};

struct Instance {
  uint64_t comm_id = 0;
  int traffic_class = nccl::kUndefined;
  std::atomic<nccl::ProfilerCallback> profiler{nullptr};
  // Domains by the thread that sets connections up, which is a communicator's own, and only as long
  // as they are used. Otherwise one domain, until finalize().
  bool by_thread = false;
  config::Settings settings;

  std::mutex mutex;  // for what follows; never taken with a domain's held
  std::vector<std::unique_ptr<Domain>> domains;
  std::map<const void*, Pending> pending;
  std::set<Comm*> comms;
  std::set<Registration*> registrations;
};

// init() of a communicator; never fails (0 devices instead).
Instance* create_instance(uint64_t comm_id, int traffic_class, nccl::ProfilerCallback profiler);
// Null for what is no living instance.
Instance* find_instance(void* context);
// The one of table versions without contexts; null before its init(). Its profiler is the latest
// that was given.
Instance* shared_instance();
Instance* create_shared_instance(nccl::ProfilerCallback profiler);
// Closes all that is left. Unknown ones are ignored.
void destroy_instance(void* context);
// At the end of the process: closes what is half open in instances without connections. Those with
// connections may be in use by NCCL's threads still; the kernel reaps them.
void reap_idle_instances();

// A domain for new work of the calling thread, counted as used once.
Status acquire_domain(Instance* instance, Domain** domain);
void release_domain(Domain* domain);

}  // namespace bitrail::plugin
