// Whoever connects to a listener while a job starts: proven or refused, without blocking.
//
// A stranger can neither stop a start nor fill the memory: what it sends is at most
// kProofMaxBuffered bytes, it is dropped after kGuestMs, and of too many the oldest go first.
#pragma once

#include <poll.h>

#include <list>
#include <memory>
#include <vector>

#include "runtime/bootstrap/connection.h"

namespace bitrail::bootstrap {

struct Guest {
  std::unique_ptr<Connection> connection;
  Frame first;  // what it said after the proof
};

class Guests {
 public:
  Guests(const World& world, int64_t timeout_ms) : world_(world), timeout_ms_(timeout_ms) {}

  void listen(UniqueFd listener) { listener_ = std::move(listener); }
  void close() { listener_.reset(); }

  // Appends what to poll for; attend() then takes the same array with its results. At most
  // *timeout_ms may be slept.
  void collect(std::vector<pollfd>* polled, int* timeout_ms);
  Status attend(const std::vector<pollfd>& polled, std::vector<Guest>* arrived);

  // The last one turned away, for telling why somebody is missing; OK when there was none.
  const Status& refused() const { return refused_; }

 private:
  struct Visit {
    std::unique_ptr<Connection> connection;
    Deadline until;
    bool refused = false;  // stays until `until` so that it can read the alert
    size_t polled_at = SIZE_MAX;
  };

  void serve(Visit* visit, std::vector<Guest>* arrived);
  void refuse(Visit* visit, const Status& reason);

  const World& world_;
  int64_t timeout_ms_;
  UniqueFd listener_;
  size_t listener_at_ = SIZE_MAX;
  std::list<Visit> visits_;
  Status refused_;
};

}  // namespace bitrail::bootstrap
