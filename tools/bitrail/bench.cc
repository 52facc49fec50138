#include "tools/bitrail/bench.h"

#include <CLI/CLI.hpp>
#include <string>

#include "tools/bitrail/bench_kernels.h"

namespace bitrail::tool {

int bench_main(int argc, char** argv) {
  CLI::App app{
      "Measures parts of BitRail in this process. A table (name, value, bar, ok); the exit code is "
      "1 "
      "when a bar is missed.",
      "bitrail bench"};
  std::string json;
  bool quick = false;
  CLI::App* kernels = app.add_subcommand("kernels", "The SIMD kernels against memcpy");
  kernels->add_flag("--quick", quick, "Fewer repetitions: under 50 s on 2 cores");
  kernels->add_option("--json", json, "Write the rows there too");
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  return tools::BenchKernels(quick, json);
}

}  // namespace bitrail::tool
