// A rank as a process: joins as the environment says, all-gathers its rank, and with `wait` stays
// until it learns of a failure. Exit 0; the status code on failure.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/bootstrap.h"

namespace {

using bitrail::Deadline;
using bitrail::Status;
using bitrail::bootstrap::Bootstrap;

Status run(bool wait) {
  bitrail::config::Settings settings;
  bitrail::bootstrap::World world;
  std::unique_ptr<Bootstrap> bootstrap;
  BITRAIL_TRY(bitrail::config::load(&settings));
  BITRAIL_TRY(bitrail::bootstrap::detect(nullptr, settings, &world));
  const Deadline deadline = Deadline::in_ms(settings.timeout_ms);
  BITRAIL_TRY(Bootstrap::join(world, settings, deadline, &bootstrap));
  std::vector<int> all(static_cast<size_t>(world.size));
  BITRAIL_TRY(bootstrap->allgather(&world.rank, sizeof(int), all.data(), deadline));
  for (int rank = 0; rank < world.size; rank++) {
    if (all[static_cast<size_t>(rank)] != rank) {
      return bitrail::failure(BITRAIL_ERR_INTERNAL, "wrong data for rank {}", rank);
    }
  }
  std::printf("rank %d of %d by %s, pid %d\n", world.rank, world.size, world.launcher.c_str(),
              static_cast<int>(getpid()));
  (void)std::fflush(stdout);
  while (wait && !bootstrap->failed() && !deadline.passed()) {
    pollfd entry{bootstrap->event_fd(), POLLIN, 0};
    (void)poll(&entry, 1, deadline.left_ms(1000));
    bootstrap->poll();
  }
  return {bootstrap->failure().code, bootstrap->failure().text};
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc > 1 && std::string_view(argv[1]) == "wait");
  if (!status.ok()) std::fprintf(stderr, "failed: %s\n", status.text().c_str());
  return status.code();
}
