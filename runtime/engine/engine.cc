// Life of the engine, its failure, and its background thread. Running programs: drive.cc; waiting:
// wait.cc.
#include "runtime/engine/engine.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "runtime/trace/log.h"
#include "runtime/transport/host_id.h"

namespace bitrail::engine {
namespace {

constexpr int kSpinsAlone = 200, kSpinsShared = 0;  // rounds before the core is given away
constexpr int kNapMs = 1;                           // background thread while callers do the work
constexpr int kSleepMs = 100;                       // longest sleep of the background thread
constexpr int64_t kNameTheLostNs = 1'000'000'000;   // grace for the bootstrap to name a lost rank

}  // namespace

Engine::Engine(std::unique_ptr<transport::Context> context, bootstrap::Bootstrap* bootstrap,
               int rank, int world_size, int64_t timeout_ms)
    : context_(std::move(context)),
      bootstrap_(bootstrap),
      rank_(rank),
      world_size_(world_size),
      timeout_ms_(timeout_ms),
      mesh_(context_.get(), rank, world_size),
      point_mesh_(context_.get(), rank, world_size) {}

Engine::~Engine() {
  stop();
  if (wake_fd_ >= 0) ::close(wake_fd_);
}

Status Engine::start(Deadline deadline) {
  wake_fd_ = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (wake_fd_ < 0)
    return failure(BITRAIL_ERR_SYSTEM, "rank {}: eventfd: {}", rank_, std::strerror(errno));
  event_fd_ = context_->event_fd();
  registers_ = world_size_ > 1 && context_->devices() > 0 && context_->device(0).registers_messages;
  if (world_size_ > 1) {
    struct Introduction {
      transport::Handle collective, point;
      transport::HostId host;
      cpu_set_t cpus;  // where the rank may run
    };
    Introduction own{};
    BITRAIL_TRY(mesh_.listen(&own.collective));
    BITRAIL_TRY(point_mesh_.listen(&own.point));
    own.host = transport::host_id();
    if (::sched_getaffinity(0, sizeof(own.cpus), &own.cpus) != 0) CPU_ZERO(&own.cpus);
    std::vector<Introduction> all(static_cast<size_t>(world_size_));
    BITRAIL_TRY(bootstrap_->allgather(&own, sizeof(own), all.data(), deadline));
    std::vector<transport::Handle> collective, point;
    int here = 0;
    cpu_set_t cpus_here;
    CPU_ZERO(&cpus_here);
    for (const Introduction& other : all) {
      collective.push_back(other.collective);
      point.push_back(other.point);
      if (!(other.host == own.host)) continue;
      here++;
      CPU_OR(&cpus_here, &cpus_here, &other.cpus);
    }
    mesh_.set_handles(std::move(collective));
    point_mesh_.set_handles(std::move(point));
    // Looking again costs nothing where every rank has a core; elsewhere it takes the core from
    // whoever is waited for.
    spins_ = here <= CPU_COUNT(&cpus_here) ? kSpinsAlone : kSpinsShared;
  }
  thread_ = std::thread([this] { background(); });
  return {};
}

void Engine::stop() {
  if (stopping_.exchange(true)) return;
  wake();
  if (thread_.joinable()) thread_.join();
  std::lock_guard lock(mutex_);
  fail({rank_, BITRAIL_ERR_ABORTED, "the communicator was destroyed"}, /*tell=*/false);
}

void Engine::wake() {
  if (wake_fd_ < 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_fd_, &one, sizeof(one));
}

Status Engine::first_failure() const {
  std::lock_guard lock(failure_mutex_);
  return Status(failure_.code, failure_.text);
}

void Engine::abort(const bootstrap::Failure& failure) {
  callers_++;
  const std::lock_guard lock(mutex_);
  callers_--;
  fail(failure, /*tell=*/true);
}

bool Engine::adopt_failure() {
  if (failed_.load(std::memory_order_relaxed)) return true;
  if (bootstrap_ == nullptr || !bootstrap_->failed()) return false;
  fail(bootstrap_->failure(), /*tell=*/false);
  return true;
}

// A broken connection is mostly the trace of a lost rank, and not always of the rank at its other
// end: give the bootstrap a moment to say who it was.
void Engine::fail(const bootstrap::Failure& failure, bool tell) {
  if (failed_.load(std::memory_order_relaxed)) return;
  bootstrap::Failure first = failure;
  if (bootstrap_ != nullptr && tell) {
    const bool maybe_lost = failure.code == BITRAIL_ERR_PEER_LOST ||
                            failure.code == BITRAIL_ERR_SYSTEM ||
                            failure.code == BITRAIL_ERR_TIMEOUT;
    const int64_t until = now_ns() + (maybe_lost ? kNameTheLostNs : 0);
    do {
      bootstrap_->poll();
      if (bootstrap_->failed()) break;
      if (maybe_lost) ::usleep(1000);
    } while (now_ns() < until);
    if (bootstrap_->failed()) {
      first = bootstrap_->failure();
    } else {
      bootstrap_->report(failure);
    }
  }
  {
    std::lock_guard lock(failure_mutex_);
    failure_ = first;
    failed_.store(true, std::memory_order_release);
  }
  if (!stopping_) log::warn("{}", first.text);
  // Connections first: when this returns nothing writes into callers' buffers.
  mesh_.close();
  point_mesh_.close();
  context_.reset();
  for (Run* run : std::vector<Run*>(runs_)) {
    if (run->status.ok()) run->status = Status(first.code, first.text);
    end_run(run);
  }
  for (Transfer* transfer : std::vector<Transfer*>(transfers_))
    end_transfer(transfer, Status(first.code, first.text));
}

// Works whenever no caller is inside. While callers come and go it only naps, so that it neither
// fights for the lock nor makes every message of a peer ring a bell.
void Engine::background() {
  uint64_t seen_entries = 0;
  while (!stopping_) {
    if (bootstrap_ != nullptr) bootstrap_->poll();
    int timeout_ms = kNapMs;
    bool events_wanted = false;
    if (callers_.load() == 0) {
      std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock.owns_lock()) {
        const uint64_t entries = totals_.entries.load();
        const bool quiet = entries == seen_entries;  // no call since the last nap
        seen_entries = entries;
        if (!adopt_failure()) {
          int idle_rounds = 0;
          while (callers_.load() == 0 && !stopping_ && idle_rounds < 64) {
            idle_rounds = drive() > 0 ? 0 : idle_rounds + 1;
            if (failed_) break;
          }
          watch_all();
        }
        if (failed_) {
          timeout_ms = kSleepMs;
        } else if (quiet || !runs_.empty() || !transfers_.empty()) {
          bool idle = false;
          const Status status = context_->arm(&idle);
          if (!status.ok()) {
            fail({rank_, status.code(), status.text()}, /*tell=*/true);
          } else if (!idle) {
            continue;
          }
          events_wanted = idle;
          const int64_t timer = context_->next_timer_ns();
          timeout_ms = timer == INT64_MAX ? kSleepMs : Deadline{timer}.left_ms(kSleepMs);
        }
      }
    }
    pollfd fds[3] = {{wake_fd_, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
    if (bootstrap_ != nullptr) fds[1].fd = bootstrap_->event_fd();
    if (events_wanted) fds[2].fd = event_fd_;
    ::poll(fds, 3, timeout_ms);
    if (fds[0].revents != 0) {
      uint64_t count;
      [[maybe_unused]] const ssize_t taken = ::read(wake_fd_, &count, sizeof(count));
    }
  }
}

}  // namespace bitrail::engine
