// `bitrail perf bw` and `bitrail perf lat`: the transport alone between two ranks.
#pragma once

namespace bitrail::tool {

int link_perf_main(int argc, char** argv);

}  // namespace bitrail::tool
