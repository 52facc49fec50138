#include "tools/bitrail/perf/link_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>

namespace bitrail::tool {

int LinkOptions::iterations_of(size_t bytes) const {
  if (iterations > 0) return iterations;
  if (latency) return 1000;
  return static_cast<int>(
      std::clamp<size_t>((size_t{256} << 20) / std::max<size_t>(bytes, 1), 100, 20'000));
}

bool parse_link_options(int argc, char** argv, LinkOptions* options, int* exit_code) {
  CLI::App app{
      "Measures the transport between two ranks, in perftest's terms: `bw` keeps messages in\n"
      "flight from rank 0 to rank 1, `lat` plays ping-pong and shows half of the round trip.\n"
      "MB are 2^20 bytes. Run it under `bitrail launch -n 2`, mpirun or srun.",
      "bitrail perf"};
  std::string what;
  app.add_option("what", what, "bw or lat")->required()->check(CLI::IsMember({"bw", "lat"}));
  app.add_option("--transport", options->transport, "Transport (as BITRAIL_TRANSPORT)")
      ->check(CLI::IsMember({"auto", "ucx", "verbs"}));
  app.add_option("-b,--minbytes", options->min_bytes, "Smallest size, with K, M or G (1024)")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE");
  app.add_option("-e,--maxbytes", options->max_bytes, "Largest size")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE");
  app.add_option("-f,--stepfactor", options->step_factor, "Multiply by this")
      ->check(CLI::Range(2, 1 << 20));
  app.add_option("-n,--iters", options->iterations, "Timed messages; 0: by the size")
      ->check(CLI::Range(0, 100'000'000));
  app.add_option("-w,--warmup_iters", options->warmup, "Messages before those")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--window", options->window, "bw: messages in flight")->check(CLI::Range(1, 1024));
  app.add_option("-c,--check", options->check, "Look whether the right bytes arrived (0, 1)");
  app.add_option("--json", options->json_file, "Write the rows there too (rank 0)");
  try {
    app.parse(argc, argv);
    if (options->max_bytes < options->min_bytes)
      throw CLI::ValidationError("-e", "is smaller than -b");
    if (options->max_bytes > (size_t{1} << 30)) throw CLI::ValidationError("-e", "at most 1G");
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error);
    return false;
  }
  options->latency = what == "lat";
  return true;
}

}  // namespace bitrail::tool
