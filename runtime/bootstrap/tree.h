// The standing tree: all-gathers travel along it, and it tells who is lost.
//
// Liveness. Who sees a neighbour's socket end without a goodbye floods "rank r is lost" over its
// other links; who hears it for the first time floods it on. The first failure a rank learns of is
// the one it keeps. A rank that is lost may stand between others: its parent and its children each
// see it go, so every remaining piece of the tree learns of it.
//
// Leaving. A rank that says goodbye is not lost, and its links just end. What it leaves behind are
// pieces: the tree above it and one tree below each of its children. Failures travel within a piece
// only. That is sound because no collective can complete once a rank has left: an all-gather that
// needs a rank that left fails at once, in its piece, naming that rank; and what was under way in
// the transport when it left either completes or runs into its own deadline.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"
#include "runtime/bootstrap/rendezvous.h"

namespace bitrail::bootstrap {

class Tree : public Bootstrap {
 public:
  Tree(const World& world, std::vector<Member> members);
  ~Tree() override;

  // Watches the sockets, waits until the whole tree stands, and closes what only the start needed.
  Status start(Deadline deadline);

  Status allgather(const void* mine, size_t bytes, void* all, Deadline deadline) override;
  const std::string& secret() const override { return secret_; }
  int event_fd() const override { return epoll_.get(); }
  void poll() override;
  bool failed() const override { return failed_.load(std::memory_order_acquire); }
  Failure failure() const override;
  void report(const Failure& failure) override;

 private:
  struct Link {
    Member member;
    bool open = true;          // false: said goodbye, or lost
    bool watches_out = false;  // epoll also waits for room to send
    bool has_gather = false;
    std::vector<uint8_t> gather;  // the child's next Gather, until this rank calls too
  };
  struct Call {  // the all-gather under way
    bool active = false, sent_up = false, complete = false;
    uint32_t sequence = 0;
    std::vector<uint8_t> mine, result;
  };

  // All below: mutex_ is held.
  Status watch();
  void pump();
  void handle(Link* link);
  bool on_frame(Link* link, const Frame& frame);  // false: nonsense
  void on_goodbye(Link* link);
  void on_end(Link* link);
  void send(Link* link, Kind kind, std::span<const uint8_t> payload = {});
  void update_events(Link* link);
  void drop(Link* link);
  void fail(const Failure& failure, const Link* from);
  void release_enlisted();
  std::string name_of(const Link& link) const;

  // gather.cc
  void advance();
  bool on_gather(Link* link, const Frame& frame);
  bool on_spread(const Frame& frame);
  void finish(std::span<const uint8_t> spread_payload);
  bool everybody_below(std::vector<uint8_t>* payload);
  Status overdue(Deadline deadline);
  void wake();

  const int rank_, size_;
  const std::string secret_;
  mutable std::mutex mutex_;  // everything but what is named below
  std::mutex calling_;        // one all-gather at a time; taken before mutex_
  std::atomic<bool> failed_{false};
  Failure failure_;
  UniqueFd epoll_, wake_;  // wake_: rouses the caller of an all-gather when another thread polled
  std::vector<Link> links_;
  Call call_;
};

}  // namespace bitrail::bootstrap
