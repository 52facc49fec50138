#include "plugin/net/instance.h"

#include <algorithm>

#include "plugin/common/contexts.h"
#include "plugin/log/log.h"
#include "plugin/net/caretaker.h"
#include "plugin/net/comm.h"
#include "plugin/net/devices.h"
#include "plugin/net/memory.h"
#include "plugin/settings/settings.h"

namespace bitrail::plugin {
namespace {

Contexts<Instance>& contexts() { return Contexts<Instance>::get(); }

std::unique_ptr<Instance> make(uint64_t comm_id, int traffic_class,
                               nccl::ProfilerCallback profiler) {
  auto made = std::make_unique<Instance>();
  made->comm_id = comm_id;
  made->traffic_class = traffic_class;
  made->profiler = profiler;
  find_devices();
  const Status status = load_settings(&made->settings);
  if (!status.ok()) warn("init", "{}", status.text());
  return made;
}

// A context that gave itself up (after an abort, say) serves what it has, but nothing new.
bool usable(Domain* domain) {
  const std::lock_guard lock(domain->mutex);
  bool idle = false;
  return domain->context->arm(&idle).ok();
}

Status open_domain(Instance* instance, std::unique_ptr<Domain>* domain) {
  transport::Options options;
  transport_options(instance->settings, instance->comm_id, instance->traffic_class, &options);
  auto made = std::make_unique<Domain>();
  BITRAIL_TRY(transport::open(instance->settings.transport, options, &made->context));
  made->instance = instance;
  made->thread = std::this_thread::get_id();
  *domain = std::move(made);
  return {};
}

void close_all(Instance* instance) {
  // NCCL is done with this communicator: nobody else touches the lists.
  while (!instance->pending.empty()) drop_pending(instance, instance->pending.begin()->first);
  while (!instance->comms.empty()) close_comm(*instance->comms.begin());
  while (!instance->registrations.empty()) deregister(*instance->registrations.begin());
  for (const auto& domain : instance->domains) unwatch(domain.get());
  instance->domains.clear();
}

}  // namespace

Instance* create_instance(uint64_t comm_id, int traffic_class, nccl::ProfilerCallback profiler) {
  return contexts().add(make(comm_id, traffic_class, profiler));
}

Instance* create_shared_instance(nccl::ProfilerCallback profiler) {
  if (Instance* known = shared_instance()) {
    find_devices();
    if (profiler != nullptr) known->profiler = profiler;
    return known;
  }
  std::unique_ptr<Instance> made = make(0, nccl::kUndefined, profiler);
  made->by_thread = true;
  Contexts<Instance>& known = contexts();
  const std::lock_guard lock(known.mutex);
  if (known.shared == nullptr) {
    known.all.insert(made.get());
    known.shared = made.release();
  }
  return known.shared;
}

Instance* find_instance(void* context) { return contexts().find(context); }

Instance* shared_instance() { return contexts().find_shared(); }

void destroy_instance(void* context) {
  const std::unique_ptr<Instance> instance = contexts().take_out(context);
  if (instance != nullptr) close_all(instance.get());
}

void reap_idle_instances() {
  std::vector<Instance*> idle;
  {
    Contexts<Instance>& known = contexts();
    const std::lock_guard lock(known.mutex);
    std::copy_if(known.all.begin(), known.all.end(), std::back_inserter(idle),
                 [](Instance* instance) {
                   const std::lock_guard inner(instance->mutex);
                   return std::none_of(instance->comms.begin(), instance->comms.end(), connected);
                 });
    for (Instance* instance : idle) known.all.erase(instance);
    if (!known.all.contains(known.shared)) known.shared = nullptr;
  }
  for (Instance* instance : idle) {
    close_all(instance);
    delete instance;
  }
}

Status acquire_domain(Instance* instance, Domain** domain) {
  const std::lock_guard lock(instance->mutex);
  const std::thread::id self = std::this_thread::get_id();
  for (const auto& known : instance->domains) {
    if (known->retired || (instance->by_thread && known->thread != self)) continue;
    if (!usable(known.get())) {
      known->retired = true;
      continue;
    }
    known->users++;
    *domain = known.get();
    return {};
  }
  std::unique_ptr<Domain> made;
  BITRAIL_TRY(open_domain(instance, &made));
  made->users = 1;
  *domain = made.get();
  instance->domains.push_back(std::move(made));
  watch(*domain);
  return {};
}

void release_domain(Domain* domain) {
  Instance* instance = domain->instance;
  std::unique_ptr<Domain> unused;
  {
    const std::lock_guard lock(instance->mutex);
    if (--domain->users > 0 || (!instance->by_thread && !domain->retired)) return;
    auto place = std::find_if(instance->domains.begin(), instance->domains.end(),
                              [domain](const auto& known) { return known.get() == domain; });
    unused = std::move(*place);
    instance->domains.erase(place);
  }
  unwatch(unused.get());
}

}  // namespace bitrail::plugin
