#include "plugin/net/caretaker.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "plugin/net/domain.h"

namespace bitrail::plugin {
namespace {

constexpr std::chrono::milliseconds kPause{5};

struct Watched {
  Domain* domain;
  uint64_t turns;
};

class Caretaker {
 public:
  void add(Domain* domain) {
    const std::lock_guard lock(mutex_);
    watched_.push_back({domain, 0});
    if (watched_.size() > 1) return;
    ending_ = false;
    thread_ = std::thread([this] { run(); });
  }

  void remove(Domain* domain) {
    std::thread ended;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(watched_, [domain](const Watched& entry) { return entry.domain == domain; });
      if (!watched_.empty() || !thread_.joinable()) return;
      ending_ = true;
      ended = std::move(thread_);
    }
    wake_.notify_all();
    ended.join();
  }

 private:
  void run() {
    // Signals are for the program's own threads.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    pthread_setname_np(pthread_self(), "bitrail-care");
    std::unique_lock lock(mutex_);
    const std::thread::id self = std::this_thread::get_id();
    // The second: ended by remove(), and begun anew by add() before this one noticed.
    while (!ending_ && (thread_.get_id() == self || !thread_.joinable())) {
      for (Watched& entry : watched_) visit(&entry);
      wake_.wait_for(lock, kPause);
    }
  }

  static void visit(Watched* entry) {
    Domain* domain = entry->domain;
    const uint64_t turns = domain->turns.load(std::memory_order_relaxed);
    if (turns == entry->turns && domain->mutex.try_lock()) {
      domain->context->progress();
      domain->mutex.unlock();
    }
    entry->turns = turns;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Watched> watched_;
  std::thread thread_;
  bool ending_ = false;
};

// Never destroyed: NCCL's threads may outlive static objects.
Caretaker& caretaker() {
  static auto* object = new Caretaker;
  return *object;
}

}  // namespace

void watch(Domain* domain) { caretaker().add(domain); }
void unwatch(Domain* domain) { caretaker().remove(domain); }

}  // namespace bitrail::plugin
