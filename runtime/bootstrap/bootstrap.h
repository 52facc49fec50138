// Joins the ranks of a job: who am I, where is rank 0, are you one of us; then a tree of sockets
// that carries small all-gathers and, for as long as the job lives, liveness.
//
// detect() finds rank, size, rendezvous, secret. join() proves the secret on every connection,
// registers with rank 0, and builds a tree (parent and children); data travels along the tree only.
// The sockets stay open: when a rank goes, its neighbours flood "rank r is lost" along what is left
// of the tree, so every rank names the lost rank.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/common/clock.h"
#include "runtime/common/status.h"
#include "runtime/config/settings.h"

namespace bitrail::bootstrap {

struct World {
  int rank = 0;
  int size = 1;
  std::string launcher;    // "callback", "torchrun", "pmix", "hydra", "bitrail", "single"
  std::string rendezvous;  // "host:port" of rank 0; empty when `exchange` is used instead
  std::string job_id;
  std::string secret;
  // All-gather of small blobs by the launcher (callback, PMIx); empty when there is a rendezvous
  // address.
  std::function<Status(const void* mine, size_t bytes, void* all)> exchange;
};

// In order of being explicit: the caller's options (rank, size, callback), `bitrail launch`,
// torchrun, PMIx, Hydra, single.
Status detect(const bitrail_comm_options_t* options, const config::Settings& settings,
              World* world);

struct Failure {
  int rank = -1;  // the rank at fault, -1 none in particular
  bitrail_status_t code = BITRAIL_OK;
  std::string text;
};

// Thread safe: a background thread polls while a caller gathers.
class Bootstrap {
 public:
  virtual ~Bootstrap() = default;  // says goodbye, so that leaving is not taken for being lost

  static Status join(const World& world, const config::Settings& settings, Deadline deadline,
                     std::unique_ptr<Bootstrap>* bootstrap);

  // all: size x bytes, by rank. Collective; gathers up the tree and broadcasts down. Fails early
  // when a rank is lost.
  virtual Status allgather(const void* mine, size_t bytes, void* all, Deadline deadline) = 0;

  // The job's secret as joined with: given, or made by rank 0 and spread by the launcher's
  // exchange. The transport proves the same one.
  virtual const std::string& secret() const = 0;

  // Liveness. event_fd() is readable when poll() has something to read; poll() never blocks.
  virtual int event_fd() const = 0;
  virtual void poll() = 0;
  // The first failure that this rank learned of, code OK if none. Cheap (one atomic read) while
  // there is none.
  virtual bool failed() const = 0;
  virtual Failure failure() const = 0;
  // Tells all ranks that the job failed: a mismatch found here, an abort, a rank given up after a
  // timeout. First one wins.
  virtual void report(const Failure& failure) = 0;
};

}  // namespace bitrail::bootstrap
