// Open MPI's mpirun and Slurm: rank and size from the PMIx server, and an all-gather by it
// (put, commit, fence, get).
//
// The PMIx client is shared with whoever else uses it in this process (MPI): PMIx_Init counts. It
// stays initialized until the process ends normally, because a client that has finalized cannot
// always come back, and because mpirun takes a process that ends without finalizing for a failed
// one, which is then right.
#include <cstdlib>

#include "runtime/bootstrap/launcher.h"

#ifdef BITRAIL_HAVE_PMIX
#include <pmix.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>

#include "runtime/config/variables.h"
#endif

namespace bitrail::bootstrap {

#ifdef BITRAIL_HAVE_PMIX
namespace {

Status refused(const char* what, pmix_status_t status) {
  return failure(BITRAIL_ERR_SYSTEM, "{} (PMIx, the launcher's service): {}", what,
                 PMIx_Error_string(status));
}

void leave() { (void)PMIx_Finalize(nullptr, 0); }

Status init(pmix_proc_t* self) {
  static std::once_flag once;
  static pmix_proc_t name;
  static pmix_status_t result = PMIX_ERROR;
  std::call_once(once, [] {
    result = PMIx_Init(&name, nullptr, 0);
    if (result == PMIX_SUCCESS) (void)std::atexit(leave);
  });
  if (result != PMIX_SUCCESS) return refused("PMIx_Init", result);
  *self = name;
  return {};
}

// Everybody of the job.
pmix_proc_t wildcard(const pmix_proc_t& self) {
  pmix_proc_t all{};
  std::memcpy(all.nspace, self.nspace, sizeof all.nspace);
  all.rank = PMIX_RANK_WILDCARD;
  return all;
}

struct Fence {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  pmix_status_t status = PMIX_SUCCESS;
};

void fenced(pmix_status_t status, void* user) {
  const std::unique_ptr<std::shared_ptr<Fence>> fence(static_cast<std::shared_ptr<Fence>*>(user));
  const std::lock_guard lock((*fence)->mutex);
  (*fence)->status = status;
  (*fence)->done = true;
  (*fence)->changed.notify_all();
}

// All ranks of the job; what they committed comes along. The callback may come after the deadline,
// so it owns a share of what it writes to.
Status fence_all(const pmix_proc_t& self, int64_t timeout_ms) {
  const pmix_proc_t all = wildcard(self);
  pmix_info_t collect;
  bool yes = true;
  PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
  const auto fence = std::make_shared<Fence>();
  auto owned = std::make_unique<std::shared_ptr<Fence>>(fence);
  const pmix_status_t started = PMIx_Fence_nb(&all, 1, &collect, 1, &fenced, owned.get());
  if (started == PMIX_OPERATION_SUCCEEDED) return {};
  if (started != PMIX_SUCCESS) return refused("PMIx_Fence_nb", started);
  (void)owned.release();
  std::unique_lock lock(fence->mutex);
  if (!fence->changed.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                               [&] { return fence->done; })) {
    return failure(BITRAIL_ERR_TIMEOUT,
                   "not all ranks of the job came to the PMIx fence within BITRAIL_TIMEOUT_MS={}",
                   timeout_ms);
  }
  return fence->status == PMIX_SUCCESS ? Status() : refused("PMIx_Fence", fence->status);
}

Status allgather(int size, int64_t timeout_ms, const void* mine, size_t bytes, void* all) {
  static std::atomic<int> calls{0};  // the same at every rank: communicators are made in one order
  pmix_proc_t self;
  BITRAIL_TRY(init(&self));
  const std::string key = fmt::format("bitrail.{}", calls++);
  pmix_value_t value;
  value.type = PMIX_BYTE_OBJECT;
  value.data.bo.bytes = static_cast<char*>(const_cast<void*>(mine));
  value.data.bo.size = bytes;
  pmix_status_t status = PMIx_Put(PMIX_GLOBAL, key.c_str(), &value);
  if (status == PMIX_SUCCESS) status = PMIx_Commit();
  if (status != PMIX_SUCCESS) return refused("PMIx_Put", status);
  BITRAIL_TRY(fence_all(self, timeout_ms));
  for (int rank = 0; rank < size; rank++) {
    pmix_proc_t peer = wildcard(self);
    peer.rank = static_cast<pmix_rank_t>(rank);
    pmix_value_t* found = nullptr;
    status = PMIx_Get(&peer, key.c_str(), nullptr, 0, &found);
    if (status != PMIX_SUCCESS)
      return refused(fmt::format("PMIx_Get of rank {}", rank).c_str(), status);
    const bool good = found->type == PMIX_BYTE_OBJECT && found->data.bo.size == bytes;
    if (good) {
      std::memcpy(static_cast<char*>(all) + static_cast<size_t>(rank) * bytes, found->data.bo.bytes,
                  bytes);
    }
    PMIX_VALUE_RELEASE(found);
    if (!good) {
      return failure(BITRAIL_ERR_PROTOCOL, "rank {} published something else by PMIx", rank);
    }
  }
  return {};
}

}  // namespace

Status detect_pmix(const config::Settings& settings, World* world, bool* found) {
  if (std::getenv("PMIX_RANK") == nullptr || std::getenv("PMIX_NAMESPACE") == nullptr) return {};
  pmix_proc_t self;
  BITRAIL_TRY(init(&self));
  const pmix_proc_t job = wildcard(self);
  pmix_value_t* size = nullptr;
  const pmix_status_t status = PMIx_Get(&job, PMIX_JOB_SIZE, nullptr, 0, &size);
  if (status != PMIX_SUCCESS) return refused("PMIx_Get of the job's size", status);
  const int64_t count = size->type == PMIX_UINT32 ? size->data.uint32 : 0;
  PMIX_VALUE_RELEASE(size);
  if (count < 1 || count > config::kMaxRanks || self.rank >= count) {
    return failure(BITRAIL_ERR_CONFIG, "PMIx says rank {} of {}", self.rank, count);
  }
  world->rank = static_cast<int>(self.rank);
  world->size = static_cast<int>(count);
  world->launcher = "pmix";
  if (world->job_id.empty()) world->job_id = self.nspace;
  if (!world->exchange) {
    world->exchange = [size = world->size, timeout_ms = settings.timeout_ms](
                          const void* mine, size_t bytes, void* all) {
      return allgather(size, timeout_ms, mine, bytes, all);
    };
  }
  *found = true;
  return {};
}

#else

Status detect_pmix(const config::Settings&, World*, bool*) {
  if (std::getenv("PMIX_RANK") == nullptr || std::getenv("PMIX_NAMESPACE") == nullptr) return {};
  return failure(
      BITRAIL_ERR_UNSUPPORTED,
      "this process was started by a PMIx launcher (mpirun, srun), but this build has no "
      "PMIx: configure with -Dpmix=enabled (Debian: libpmix-dev), or start it by `bitrail "
      "launch`, or set BITRAIL_RANK, BITRAIL_WORLD_SIZE, BITRAIL_RENDEZVOUS and "
      "BITRAIL_SECRET");
}

#endif

}  // namespace bitrail::bootstrap
