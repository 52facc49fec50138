#include "tools/bitrail/commands.h"

#include "tools/bitrail/bench.h"
#include "tools/bitrail/info.h"
#include "tools/bitrail/launch.h"
#include "tools/bitrail/perf/perf.h"
#include "tools/bitrail/schedule.h"
#include "tools/bitrail/topo/topo.h"
#include "tools/bitrail/train.h"

namespace bitrail::tool {
namespace {

constexpr Command kCommands[] = {
    {"info", "versions, libraries, transports, devices, launcher, variables", info_main},
    {"launch", "starts the ranks of a job on this host", launch_main},
    {"perf", "speed and correctness of a collective", perf_main},
    {"train", "trains a BERT-style model, data parallel", train_main},
    {"bench", "kernels against memcpy", bench_main},
    {"topo", "shows what machines are made of, their paths and rails", topo_main},
    {"schedule", "draws what a collective algorithm does", schedule_main},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace bitrail::tool
