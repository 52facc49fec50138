#include "tools/bitrail/bench.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/bitrail/bench_checkpoint.h"
#include "tools/bitrail/bench_kernels.h"
#include "tools/bitrail/bench_optimizers.h"

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
  uint64_t elements = uint64_t{64} << 20;
  CLI::App* step = app.add_subcommand(
      "step", "A compressed step of 1-bit Adam against memcpy, one process: seconds as JSON");
  step->add_option("--elements", elements, "Parameters")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  step->add_option("--rounds", rounds, "Repetitions")->check(CLI::Range(1, 1000));
  std::vector<uint64_t> counts;
  CLI::App* exchange = app.add_subcommand(
      "exchange",
      "Tensors of these sizes by 1-bit allreduce, in one call and each in its own: seconds, bytes "
      "and messages as JSON. Under `bitrail launch`");
  exchange->add_option("counts", counts, "Elements of each tensor")->required()->delimiter(',');
  exchange->add_option("--rounds", rounds, "Repetitions")->check(CLI::Range(1, 1000));
  std::string optimizer;
  CLI::App* memory = app.add_subcommand(
      "memory", "Peak memory of a 1-bit optimizer: bytes as JSON. Under `bitrail launch`");
  memory->add_option("optimizer", optimizer, "onebit-adam, zero-one-adam or onebit-lamb")
      ->required();
  memory->add_option("--parameters", parameters, "Of the model")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
  int64_t steps = 0, freeze = 0;
  CLI::App* volume = app.add_subcommand(
      "volume",
      "Which exchanges a schedule makes, by running it over few elements: counts as JSON. Under "
      "`bitrail launch`");
  volume->add_option("optimizer", optimizer, "onebit-adam, zero-one-adam or onebit-lamb")
      ->required();
  volume->add_option("--steps", steps, "Of the run, DeepSpeed's first call included")
      ->required()
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40));
  volume->add_option("--freeze-step", freeze, "freeze_step or var_freeze_step")->required();
  app.require_subcommand(1);
  CLI11_PARSE(app, argc, argv);
  if (checkpoint->parsed()) return tools::BenchCheckpoint(directory, parameters, rounds);
  if (step->parsed()) return tools::BenchStep(elements, rounds);
  if (exchange->parsed()) return tools::BenchExchange(counts, rounds);
  if (memory->parsed()) return tools::BenchMemory(optimizer, parameters);
  if (volume->parsed()) return tools::BenchVolume(optimizer, steps, freeze);
  return tools::BenchKernels(quick, json);
}

}  // namespace bitrail::tool
