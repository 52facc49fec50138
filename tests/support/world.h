// A job of ranks as threads over the in-process transport: each gets a communicator of its own.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/api/comm.h"
#include "tests/support/memory_transport.h"
#include "tests/support/spawn.h"

namespace bitrail::test {

class World {
 public:
  explicit World(int size, config::Settings settings = {}, int64_t timeout_ms = 20000)
      : wire(), party(size), size_(size), settings_(std::move(settings)), timeout_ms_(timeout_ms) {}

  // Runs fn(rank, comm) on all ranks. Communicators live for the call.
  void run(const std::function<void(int, bitrail_comm_t)>& fn) {
    spawn(size_, [&](int rank) {
      bitrail_comm comm;
      comm.settings = settings_;
      comm.world.rank = rank;
      comm.world.size = size_;
      comm.world.launcher = "test";
      comm.timeout_ms = timeout_ms_;
      if (size_ > 1) comm.bootstrap = party.bootstrap(rank);
      const Status status = api::start(&comm, wire.context(rank), Deadline::in_ms(timeout_ms_));
      if (!status.ok()) {
        std::fprintf(stderr, "rank %d: %s\n", rank, status.text().c_str());
        std::abort();
      }
      fn(rank, &comm);
    });
  }

  Wire wire;
  Party party;

 private:
  int size_;
  config::Settings settings_;
  int64_t timeout_ms_;
};

}  // namespace bitrail::test
