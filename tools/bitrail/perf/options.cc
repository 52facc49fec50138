#include "tools/bitrail/perf/options.h"

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace bitrail::tool {
namespace {

const std::map<std::string, bitrail_type_t>& types() {
  static const std::map<std::string, bitrail_type_t> table = {
      {"float", BITRAIL_FLOAT32},  {"half", BITRAIL_FLOAT16},    {"bfloat16", BITRAIL_BFLOAT16},
      {"double", BITRAIL_FLOAT64}, {"int32", BITRAIL_INT32},     {"int64", BITRAIL_INT64},
      {"uint8", BITRAIL_UINT8},    {"float32", BITRAIL_FLOAT32}, {"float16", BITRAIL_FLOAT16},
      {"float64", BITRAIL_FLOAT64}};
  return table;
}

const std::map<std::string, bitrail_op_t>& ops() {
  static const std::map<std::string, bitrail_op_t> table = {
      {"sum", BITRAIL_SUM}, {"min", BITRAIL_MIN}, {"max", BITRAIL_MAX}, {"avg", BITRAIL_AVG}};
  return table;
}

void add_options(CLI::App& app, PerfOptions* options) {
  const std::map<std::string, bitrail_scale_t> scales = {{"segment", BITRAIL_SCALE_SEGMENT},
                                                         {"block", BITRAIL_SCALE_BLOCK}};
  app.add_option("collective", options->collective, "What to measure")
      ->required()
      ->check(CLI::IsMember(
          {"allreduce", "reduce_scatter", "allgather", "broadcast", "alltoall", "sendrecv"}));
  app.add_option("-b,--minbytes", options->min_bytes, "Smallest size, with K, M or G (1024)")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE");
  app.add_option("-e,--maxbytes", options->max_bytes, "Largest size")
      ->transform(CLI::AsSizeValue(false))
      ->option_text("SIZE");
  auto* step = app.add_option("-i,--stepbytes", options->step_bytes, "Add this much each time")
                   ->transform(CLI::AsSizeValue(false))
                   ->option_text("SIZE");
  app.add_option("-f,--stepfactor", options->step_factor, "Or multiply by this")
      ->check(CLI::Range(2, 1 << 20))
      ->excludes(step);
  app.add_option("-n,--iters", options->iterations, "Timed iterations; 0: until interrupted")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-w,--warmup_iters", options->warmup, "Iterations before those")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-m,--agg_iters", options->calls,
                 "Calls back to back in one iteration; 0: enough for about 0.2 ms")
      ->check(CLI::Range(0, 1000000));
  app.add_option("-d,--datatype", options->type, "Type of an element")
      ->transform(CLI::CheckedTransformer(types(), CLI::ignore_case))
      ->option_text("float|half|bfloat16|double|int32|int64|uint8");
  app.add_option("-o,--op", options->op, "Reduction")
      ->transform(CLI::CheckedTransformer(ops(), CLI::ignore_case))
      ->option_text("sum|min|max|avg");
  app.add_option("-r,--root", options->root, "Root of a broadcast");
  app.add_option("-c,--check", options->check, "Compare the results with what they must be (0, 1)");
  app.add_option("--algo", options->algo,
                 "Algorithm (as BITRAIL_ALGO for this collective); `onebit`: 1 bit a value with "
                 "error feedback, for allreduce, reduce_scatter and allgather");
  app.add_option("--scale", options->scale, "Scales of the 1-bit collective")
      ->transform(CLI::CheckedTransformer(scales, CLI::ignore_case))
      ->option_text("segment|block");
  app.add_option("--block", options->block, "Values per scale with --scale block; 0: 4096");
  app.add_option("--transport", options->transport, "Transport (as BITRAIL_TRANSPORT)")
      ->check(CLI::IsMember({"auto", "ucx", "verbs"}));
  app.add_option("--json", options->json_file, "Write the rows there too (rank 0)");
  app.add_flag("--out-of-place", options->out_of_place_only, "Leave the in-place half out");
  app.add_flag("--phases", options->phases,
               "Of an allreduce, also the time of its halves alone: reduce-scatter and all-gather");
  app.add_flag("--loop", options->loop, "Repeat the smallest size until interrupted");
  app.add_flag("--watch", options->watch,
               "After an error, wait 1 s and show that nothing wrote into the buffers");
}

}  // namespace

bool parse_perf_options(int argc, char** argv, PerfOptions* options, int* exit_code) {
  CLI::App app{
      "Measures a collective.\n"
      "Times are medians over the iterations of the slowest rank. Run it under `bitrail launch -n "
      "N`,"
      " mpirun, srun, or alone.\n"
      "`bitrail perf bw` and `bitrail perf lat` measure the transport alone; they have options of\n"
      "their own.",
      "bitrail perf"};
  add_options(app, options);
  try {
    app.parse(argc, argv);
    if (options->max_bytes < options->min_bytes)
      throw CLI::ValidationError("-e", "is smaller than -b");
    if (options->phases && options->collective != "allreduce")
      throw CLI::ValidationError("--phases", "is for allreduce");
    const bool compressible = options->collective == "allreduce" ||
                              options->collective == "reduce_scatter" ||
                              options->collective == "allgather";
    if (options->algo == "onebit" && !compressible)
      throw CLI::ValidationError("--algo", "onebit does not exist for " + options->collective);
    if (options->algo == "onebit" && options->type > BITRAIL_BFLOAT16)
      throw CLI::ValidationError("-d", "onebit takes float, half and bfloat16");
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error);
    return false;
  }
  if (options->iterations == 0) options->loop = true;
  return true;
}

const char* type_name(bitrail_type_t type) {
  static const char* const names[] = {"float", "half",  "bfloat16", "double",
                                      "int32", "int64", "uint8"};
  return names[type];
}

const char* op_name(bitrail_op_t op) {
  static const char* const names[] = {"sum", "min", "max", "avg"};
  return names[op];
}

}  // namespace bitrail::tool
