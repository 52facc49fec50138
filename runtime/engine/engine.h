// The engine: one progress domain of one rank, running programs over a transport.
//
// Threads. One lock guards the transport, the meshes and all runs. A synchronous call takes it and
// does all work on the caller's thread. A background thread takes it whenever no caller is inside:
// it runs the asynchronous calls, answers peers that still need this rank (a rendezvous, a
// connection being made) and watches the bootstrap's sockets. Both sleep on the context's event
// descriptor when nothing happens.
//
// Failure. The first failure wins, is told to all ranks, ends every connection (so nothing writes
// into callers' buffers any more), and is what every later call returns.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/engine/mesh.h"
#include "runtime/engine/run.h"
#include "runtime/engine/scratch.h"
#include "runtime/engine/totals.h"
#include "runtime/transport/transport.h"

namespace bitrail::engine {

// One point-to-point message; see engine/point_to_point.cc.
struct Transfer {
  transport::Request request;
  bool send = false, posted = false;
  int peer = -1;
  uint64_t tag = 0;
  const void* data = nullptr;
  void* target = nullptr;
  size_t bytes = 0;
  bool progressed = false;
  int64_t last_progress_ns = 0;
  std::atomic<bool> done{false};
  Status status;
};

class Engine {
 public:
  // Takes over what it gets. `timeout_ms` bounds every wait without progress.
  Engine(std::unique_ptr<transport::Context> context, bootstrap::Bootstrap* bootstrap, int rank,
         int world_size, int64_t timeout_ms);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Exchanges handles over the bootstrap and starts the background thread. Collective.
  Status start(Deadline deadline);
  // Lets the peers finish what they need from this rank, then stops. Not collective.
  void stop();

  // Starts `run` (prepared, buffers bound); it is done when run.done. The sequence number counts
  // calls of this engine.
  Status launch(Run* run);
  // Drives everything until `run` is done; the work happens on this thread. Returns the run's
  // status.
  Status finish(Run* run);
  // launch + finish with the lock taken once.
  Status execute(Run* run);

  Status launch(Transfer* transfer);
  Status finish(Transfer* transfer);

  // Fails this rank and tells the others.
  void abort(const bootstrap::Failure& failure);
  Status failure_status() const {  // OK while nothing failed
    return failed_.load(std::memory_order_acquire) ? first_failure() : Status();
  }

  Totals& totals() { return totals_; }
  transport::Context* context() { return context_.get(); }
  int rank() const { return rank_; }
  int world_size() const { return world_size_; }
  Scratch& scratch() { return scratch_; }
  // Registers a block of it, once, where the transport would register each message instead. Where
  // there is no room for that it stays so: messages are smaller, and their errors reach all ranks.
  void register_scratch(Scratch::Block* block);

 private:
  Status first_failure() const;
  // All with the lock held.
  Status start_run(Run* run);
  Status start_transfer(Transfer* transfer);
  // One round over everything; how much happened. Never blocks.
  int drive();
  int advance(Run* run);
  int advance(Transfer* transfer);
  bool connect(Run* run, int* events);
  void post_initial(Run* run);
  void post(Run* run, uint32_t id);
  void step_done(Run* run, uint32_t id);
  void take_completed(Run* run, uint32_t id);
  void end_run(Run* run);
  void end_transfer(Transfer* transfer, Status status);
  template <typename Done>
  void drive_until(Done done);
  // Waits a little, more patiently the more `rounds` passed without an event.
  void idle(int rounds, int64_t* since_ns);
  // Deadlines and mismatches of everything in flight.
  void watch_all();
  void check_mismatch(Run* run);
  void fail_mismatch(const Run* run, int peer, const std::string& detail);
  std::string awaited(const Run& run) const;
  // Enters the failed state (once): tells all if asked, ends the connections, ends all calls.
  void fail(const bootstrap::Failure& failure, bool tell);
  bool adopt_failure();  // takes over what the bootstrap learned; true when failed

  void background();
  void wake();

  std::unique_ptr<transport::Context> context_;
  bootstrap::Bootstrap* bootstrap_;
  const int rank_, world_size_;
  const int64_t timeout_ms_;
  Mesh mesh_;        // collectives
  Mesh point_mesh_;  // point to point: the full 64-bit tag is the user's
  Scratch scratch_;
  Totals totals_;

  std::mutex mutex_;
  std::vector<Run*> runs_;
  std::vector<Transfer*> transfers_;
  uint32_t sequence_ = 0;
  uint32_t polls_ = 0;
  int64_t last_look_ns_ = 0;

  mutable std::mutex failure_mutex_;
  bootstrap::Failure failure_;
  std::atomic<bool> failed_{false};

  std::atomic<bool> stopping_{false};
  std::atomic<int> callers_{0};  // threads that wait for the lock
  int event_fd_ = -1;            // the context's
  // The transport registers each long message whose memory is not, and scratch can be.
  std::atomic<bool> registers_{false};
  int spins_ = 10;  // rounds without an event before the core is given away
  int wake_fd_ = -1;
  std::thread thread_;
};

}  // namespace bitrail::engine
