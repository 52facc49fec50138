// `bitrail launch -n 4 [--] prog args...`: starts the ranks of a job on this host.
//
// Each rank gets BITRAIL_RANK and BITRAIL_WORLD_SIZE, and where the environment does not say
// otherwise a fresh BITRAIL_SECRET, BITRAIL_JOB_ID, a BITRAIL_RENDEZVOUS on loopback, and
// BITRAIL_RANKS_PER_NODE (all on one node; one a node when a link is emulated). Lines of output get
// the rank in front. When a rank fails the others have some seconds to find out and say so, then
// they are ended. When the launcher dies the ranks die.
#pragma once

#include <string>
#include <vector>

namespace bitrail::tool {

struct LaunchOptions {
  int ranks = 1;
  std::vector<std::string> program;  // and its arguments
  bool prefix = true;                // "[rank] " before each line; false: output passes untouched
  bool bind = true;                  // each rank to its share of the processors (bind.h)
  double timeout_s = 0;              // ends the job after this many seconds; 0: never
  double grace_s = 5;                // between a first failure or signal and the end of the rest
};

// The exit code: 0 when all ranks exited 0, else the first failing rank's (128 + signal when it was
// killed), 128 + signal when the launcher was told to stop, 124 after the timeout, 125 when the
// launcher itself failed. Waits for all ranks. Takes over SIGINT, SIGTERM, SIGHUP and SIGCHLD
// meanwhile.
int launch(const LaunchOptions& options);

// The subcommand's line: 2 and a message when it makes no sense.
int launch_main(int argc, char** argv);

}  // namespace bitrail::tool
