// A job of ranks as threads over the in-process transport: each gets a communicator of its own.
// TEST_TRANSPORT=ucx or verbs in the environment: over that one.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
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
      const Status status = api::start(&comm, context(rank), Deadline::in_ms(timeout_ms_));
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
  std::unique_ptr<transport::Context> context(int rank) {
    const char* name = getenv("TEST_TRANSPORT");
    if (name == nullptr) return wire.context(rank);
    transport::Options options;
    options.identity = {"a secret", "job " + std::to_string(getpid()), rank};
    options.world_size = size_;
    std::unique_ptr<transport::Context> context;
    const Status status = transport::open(name, options, &context);
    if (!status.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", rank, status.text().c_str());
      std::abort();
    }
    return context;
  }

  int size_;
  config::Settings settings_;
  int64_t timeout_ms_;
};

}  // namespace bitrail::test
