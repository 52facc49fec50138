#include "tools/bitrail/commands.h"

#include <cstdio>

#include "tools/bitrail/info.h"
#include "tools/bitrail/perf/perf.h"

namespace bitrail::tool {
namespace {

constexpr Command kCommands[] = {
    {"info", "versions, libraries, transports, devices, launcher, variables", info_main},
    {"perf", "speed and correctness of a collective", perf_main},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace bitrail::tool
