#include "tools/bitrail/bench.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "tools/bitrail/bench_checkpoint.h"
#include "tools/bitrail/bench_kernels.h"

namespace bitrail::tool {

int bench_main(int argc, char** argv) {
  CLI::App app{"Measures parts of BitRail in this process.", "bitrail bench"};
  std::string json;
  bool quick = false;
  CLI::App* kernels = app.add_subcommand(
      "kernels",
      "The SIMD kernels against memcpy: a table (name, value, bar, ok); the exit code is "
      "1 when a bar is missed");
  kernels->add_flag("--quick", quick, "Fewer repetitions: under 50 s on 2 cores");
  kernels->add_option("--json", json, "Write the rows there too");
  std::string directory;
  uint64_t parameters = 110'000'000;
  int rounds = 7;
  CLI::App* checkpoint = app.add_subcommand(
      "checkpoint",
      "Saving 1-bit Adam's state against writing and syncing the same bytes: seconds "
      "as JSON (tools/bench/checkpoint makes a table of them). Runs under `bitrail "
      "launch` too");
  checkpoint->add_option("directory", directory, "Where to write; made if it is not there")
      ->required();
  checkpoint->add_option("--parameters", parameters, "Of the model")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  checkpoint->add_option("--rounds", rounds, "Repetitions")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (checkpoint->parsed()) return tools::BenchCheckpoint(directory, parameters, rounds);
  return tools::BenchKernels(quick, json);
}

}  // namespace bitrail::tool
