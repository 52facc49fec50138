// Calls from outside, and waiting: who drives, how patiently, and when waiting has lasted too long.
#include <poll.h>
#include <sched.h>

#include <ctime>

#include "runtime/engine/engine.h"
#include "runtime/trace/log.h"

namespace bitrail::engine {
namespace {

// Where every rank has a core, quick looks catch a message that is just arriving. Then, and at once
// where ranks share a core, the core belongs to others; what takes longer is slept for.
constexpr int64_t kYieldNs = 400'000;
constexpr int64_t kLongestSleepNs = 2'000'000;
constexpr int64_t kLookAroundNs = 1'000'000;  // between looks at failures and deadlines
constexpr int64_t kMismatchAfterNs =
    50'000'000;  // without progress: look for calls that do not match

// A thread inside: holds the lock. The background thread makes way for it.
class Inside {
 public:
  Inside(std::atomic<int>* callers, std::mutex* mutex, Totals* totals) : mutex_(mutex) {
    if (!mutex_->try_lock()) {
      callers->fetch_add(1);  // whoever has the lock sees that somebody waits
      mutex_->lock();
      callers->fetch_sub(1);
    }
    totals->entries.add(1);
  }
  ~Inside() { mutex_->unlock(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  std::mutex* mutex_;
};

// Counts the time until its end `weight` times. Reading the clock twice is a twentieth of the
// shortest calls, so of those only one in kSampled is timed, for all.
class Timed {
 public:
  Timed(Totals* totals, uint64_t weight)
      : totals_(totals), weight_(weight), begin_(weight == 0 ? 0 : ticks()) {}
  ~Timed() {
    if (weight_ != 0) totals_->inside_ticks.add((ticks() - begin_) * weight_);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Totals* totals_;
  uint64_t weight_, begin_;
};

constexpr uint64_t kShortBytes = 4096, kSampled = 8;

uint64_t weight(const Run& run, const Totals& totals) {
  if (!run.connected || run.program->sent_bytes > kShortBytes) return 1;
  return totals.entries.load() % kSampled == 0 ? kSampled : 0;
}

}  // namespace

// Nothing happened `rounds` times in a row.
void Engine::idle(int rounds, int64_t* since_ns) {
  if (rounds < spins_) return;
  const int64_t now = now_ns();
  if (rounds == spins_) *since_ns = now;
  if (now - *since_ns < kYieldNs) {
    ::sched_yield();
    return;
  }
  if (now - last_look_ns_ > kLookAroundNs) {
    last_look_ns_ = now;
    if (adopt_failure()) return;
    watch_all();
    if (failed_) return;
  }
  bool quiet = false;
  const Status status = context_->arm(&quiet);
  if (!status.ok()) {
    fail({rank_, status.code(), status.text()}, /*tell=*/true);
    return;
  }
  if (!quiet) return;
  polls_ = 0;  // rounds are rare from here on: look for connections in the next one
  const int64_t timer = context_->next_timer_ns();
  int64_t sleep_ns = kLongestSleepNs;
  if (timer != INT64_MAX) sleep_ns = std::min(sleep_ns, timer - now_ns());
  if (sleep_ns <= 0) return;
  pollfd fd{event_fd_, POLLIN, 0};
  const timespec timeout{0, static_cast<long>(sleep_ns)};
  ::ppoll(&fd, 1, &timeout, nullptr);
}

template <typename Done>
void Engine::drive_until(Done done) {
  int rounds = 0;
  int64_t since_ns = 0;
  while (!done()) {
    if (drive() > 0) {
      rounds = 0;
    } else if (!done()) {
      idle(rounds++, &since_ns);
    }
  }
}

Status Engine::execute(Run* run) {
  const Inside inside(&callers_, &mutex_, &totals_);
  const Timed timed(&totals_, weight(*run, totals_));
  BITRAIL_TRY(start_run(run));
  drive_until([run] { return run->done.load(std::memory_order_relaxed); });
  return run->status;
}

Status Engine::launch(Run* run) {
  {
    const Inside inside(&callers_, &mutex_, &totals_);
    const Timed timed(&totals_, 1);
    BITRAIL_TRY(start_run(run));
  }
  wake();
  return {};
}

Status Engine::finish(Run* run) {
  if (!run->done.load(std::memory_order_acquire)) {
    const Inside inside(&callers_, &mutex_, &totals_);
    const Timed timed(&totals_, 1);
    drive_until([run] { return run->done.load(std::memory_order_relaxed); });
  }
  return run->status;
}

Status Engine::launch(Transfer* transfer) {
  {
    const Inside inside(&callers_, &mutex_, &totals_);
    const Timed timed(&totals_, 1);
    BITRAIL_TRY(start_transfer(transfer));
  }
  wake();
  return {};
}

Status Engine::finish(Transfer* transfer) {
  if (!transfer->done.load(std::memory_order_acquire)) {
    const Inside inside(&callers_, &mutex_, &totals_);
    const Timed timed(&totals_, 1);
    drive_until([transfer] { return transfer->done.load(std::memory_order_relaxed); });
  }
  return transfer->status;
}

void Engine::register_scratch(Scratch::Block* block) {
  if (block->memory != nullptr || !registers_.load(std::memory_order_relaxed) || failed_) return;
  std::unique_ptr<transport::Memory> memory;
  const Status status =
      context_->register_memory(block->data, block->bytes, transport::kHost, &memory);
  block->memory = std::move(memory);
  if (status.ok() || !registers_.exchange(false)) return;
  log::warn("rank {}: scratch stays unregistered, and each long message is registered instead: {}",
            rank_, status.text());
}

std::string Engine::awaited(const Run& run) const {
  std::string ranks;
  for (const Act act : {Act::recv, Act::send}) {
    std::vector<bool> named(static_cast<size_t>(world_size_));
    for (size_t id = 0; id < run.messages.size(); id++) {
      const Step& step = run.program->steps[id];
      if (step.act != act || run.messages[id].request.done) continue;
      if (named[static_cast<size_t>(step.peer)]) continue;
      named[static_cast<size_t>(step.peer)] = true;
      ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", step.peer);
    }
    if (!ranks.empty()) break;
  }
  if (!run.connected) {
    for (const std::vector<int>* peers : {&run.program->send_peers, &run.program->recv_peers})
      for (int peer : *peers)
        if (!mesh_.can_send(peer) || !mesh_.can_recv(peer))
          ranks += fmt::format("{}{} (not connected)", ranks.empty() ? "" : ", ", peer);
  }
  return ranks.empty() ? "nobody in particular" : ranks;
}

// Messages of this very call that nobody here waits for: the peer made another call.
void Engine::check_mismatch(Run* run) {
  for (int peer = 0; peer < world_size_; peer++) {  // also those this call expects nothing from
    if (!mesh_.can_recv(peer)) continue;
    for (const transport::Unexpected& message : mesh_.receiver(peer)->unexpected()) {
      if (message.tag >> 32 != run->sequence || message.cookie == run->program->signature) continue;
      fail_mismatch(run, peer, "its message belongs to another call");
      return;
    }
  }
}

// Deadlines run from the last progress of each call, so a long transfer on a slow link is not a
// failure.
void Engine::watch_all() {
  const int64_t now = now_ns();
  for (size_t i = 0; i < runs_.size(); i++) {
    Run* run = runs_[i];
    if (run->progressed) {
      run->progressed = false;
      run->last_progress_ns = now;
    }
    const int64_t waited = now - run->last_progress_ns;
    if (waited > kMismatchAfterNs) check_mismatch(run);
    if (failed_) return;
    if (waited > timeout_ms_ * 1'000'000) {
      fail({rank_, BITRAIL_ERR_TIMEOUT,
            fmt::format("rank {}: nothing moved for {} ms in {} (call {}); waiting for rank {}. "
                        "BITRAIL_TIMEOUT_MS sets the limit",
                        rank_, timeout_ms_, run->program->schedule.name, run->sequence,
                        awaited(*run))},
           /*tell=*/true);
      return;
    }
  }
  for (size_t i = 0; i < transfers_.size(); i++) {
    Transfer* transfer = transfers_[i];
    if (transfer->progressed) {
      transfer->progressed = false;
      transfer->last_progress_ns = now;
    }
    if (now - transfer->last_progress_ns > timeout_ms_ * 1'000'000) {
      fail({rank_, BITRAIL_ERR_TIMEOUT,
            fmt::format("rank {}: a message {} rank {} (tag {}) did not move for {} ms. "
                        "BITRAIL_TIMEOUT_MS sets the limit",
                        rank_, transfer->send ? "to" : "from", transfer->peer, transfer->tag,
                        timeout_ms_)},
           /*tell=*/true);
      return;
    }
  }
}

}  // namespace bitrail::engine
