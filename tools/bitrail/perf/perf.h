// `bitrail perf`: speed and correctness of one collective over a range of sizes.
#pragma once

namespace bitrail::tool {

int perf_main(int argc, char** argv);

}  // namespace bitrail::tool
