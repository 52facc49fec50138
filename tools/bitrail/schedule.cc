#include "tools/bitrail/schedule.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <vector>

#include "runtime/planner/choose.h"
#include "runtime/schedule/draw.h"
#include "runtime/schedule/flatten.h"
#include "runtime/schedule/simulate.h"
#include "runtime/schedule/verify.h"

namespace bitrail::tool {
namespace {

using schedule::Collective;
using schedule::Schedule;

constexpr uint64_t kBlock = 4096;  // elements a scale, with block scales

bool is_onebit(Collective collective) {
  return collective == Collective::onebit_allreduce ||
         collective == Collective::onebit_reduce_scatter ||
         collective == Collective::onebit_allgather;
}

// Whole numbers of chunks, as the parts of the caller and packed bits need them.
schedule::Binding bind(const ScheduleOptions& options, Collective collective) {
  schedule::Binding binding;
  const auto world = static_cast<uint64_t>(options.world_size);
  if (is_onebit(collective)) binding.quantum = options.block ? kBlock : 8;
  binding.piece_quantum = binding.quantum;
  binding.group = options.block ? kBlock : 0;
  const uint64_t multiple = binding.quantum * world;
  binding.counts = {(options.elements + multiple - 1) / multiple * multiple, 2};
  return binding;
}

// Which node each rank is on, if that was said.
topology::Placement place(const ScheduleOptions& options) {
  if (options.ranks_per_node == 0) return {};
  const topology::Placement blocks =
      topology::place_blocks(options.world_size, options.ranks_per_node);
  return options.cyclic ? topology::place_cyclic(options.world_size, blocks.nodes()) : blocks;
}

Status choose(const ScheduleOptions& options, Collective collective, uint64_t count,
              const topology::Placement& placement, planner::Choice* choice) {
  planner::Request request;
  request.collective = collective;
  request.world_size = options.world_size;
  request.root = options.root;
  request.count = count;
  request.bytes = count * sizeof(float);
  request.pieces = options.pieces;
  request.depth = options.depth;
  request.in_place = options.in_place;
  request.block_scale = options.block;
  if (placement.nodes() > 0) request.placement = &placement;
  const std::string algo = options.algo.empty() ? "" : options.collective + ":" + options.algo;
  return planner::choose(request, algo, 0, choice);
}

Status check(const ScheduleOptions& options) {
  if (options.world_size < 1 || options.rank >= options.world_size || options.root < 0 ||
      options.root >= options.world_size)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "rank {} or root {} is not one of {} ranks",
                   options.rank, options.root, options.world_size);
  if (options.ranks_per_node < 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "a node cannot have {} ranks",
                   options.ranks_per_node);
  if (options.cyclic && options.ranks_per_node == 0)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT,
                   "--cyclic needs --ranks-per-node: how many nodes there are");
  if (options.format != "text" && options.format != "chrome" && options.format != "svg")
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "format \"{}\" is not text, chrome or svg",
                   options.format);
  return {};
}

std::string draw(const ScheduleOptions& options, std::vector<Schedule> ranks,
                 schedule::Timeline timeline) {
  if (options.rank >= 0) {
    const auto rank = static_cast<size_t>(options.rank);
    ranks = {ranks[rank]};
    timeline.ranks = {timeline.ranks[rank]};
  }
  if (options.format == "chrome") return draw_chrome(ranks, timeline);
  if (options.format == "svg") return draw_svg(ranks, timeline);
  std::string text;
  for (const Schedule& one : ranks) text += draw_text(one) + "\n";
  return text;
}

}  // namespace

Status show_schedule(const ScheduleOptions& options, std::string* text) {
  BITRAIL_TRY(check(options));
  Collective collective{};
  if (!schedule::parse_collective(options.collective, &collective))
    return planner::check_algo(options.collective + ":any");  // says which names there are
  const schedule::Binding binding = bind(options, collective);
  const topology::Placement placement = place(options);
  planner::Choice choice;
  BITRAIL_TRY(choose(options, collective, binding.counts[schedule::kElements], placement, &choice));
  if (!options.algo.empty() && choice.algorithm->name != options.algo)
    return failure(BITRAIL_ERR_INVALID_ARGUMENT, "{} does not apply here: {}", options.algo,
                   choice.reason);
  std::vector<Schedule> ranks;
  for (int rank = 0; rank < options.world_size; rank++) {
    choice.request.rank = rank;
    ranks.push_back(flatten(choice.algorithm->build(choice.request)));
  }
  // Symbols stand for elements one by one: as few as show everything.
  schedule::Binding small = binding;
  if (small.group) small.group = small.quantum = small.piece_quantum = 8;
  small.counts[schedule::kElements] = small.quantum * ranks.size() * choice.request.pieces * 2;
  const std::vector<std::string> problems = verify(ranks, small, {collective, options.root});
  if (!problems.empty())
    return failure(BITRAIL_ERR_INTERNAL, "{} does not verify: {}", ranks[0].name, problems[0]);
  if (options.mbps <= 0) {
    *text = draw(options, ranks, unit_timeline(ranks));
    return {};
  }
  schedule::CostModel model;
  model.alpha = options.us;
  model.beta = 8 / options.mbps;
  schedule::Simulation simulation = simulate(ranks, binding, model);
  *text = draw(options, ranks, simulation.timeline);
  if (options.format == "text")
    *text +=
        fmt::format("simulated on {} Mbit/s, {} us: {:.1f} us; rank 0 sends {} bytes\n",
                    options.mbps, options.us, simulation.microseconds, simulation.bytes_sent[0]);
  return {};
}

int schedule_main(int argc, char** argv) {
  ScheduleOptions options;
  CLI::App app{
      "Shows what an algorithm does on each rank: operations, what they read, write and wait for.\n"
      "chrome: open the output in Perfetto or chrome://tracing. No ranks are started.",
      "bitrail schedule"};
  app.add_option("--collective", options.collective,
                 "allreduce, reduce_scatter, allgather, broadcast, alltoall, barrier, "
                 "onebit_allreduce, ...");
  app.add_option("--algo", options.algo,
                 "Algorithm (as in BITRAIL_ALGO); chosen by size if left out");
  app.add_option("-n,--ranks", options.world_size, "World size")->check(CLI::Range(1, 1024));
  app.add_option("-r,--rank", options.rank, "This rank only")->check(CLI::Range(0, 1023));
  app.add_option("--root", options.root, "Root of a broadcast");
  app.add_option("-e,--elements", options.elements, "float32 elements of the whole")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--pieces", options.pieces, "Pieces of a chunk; 0: by size")
      ->check(CLI::Range(0U, planner::kMaxPieces));
  app.add_option("--depth", options.depth, "Pieces in flight per peer; 0: the algorithm's own");
  app.add_option("--ranks-per-node", options.ranks_per_node,
                 "Ranks 0..K-1 are on one node, the next K on another, ...: for hierarchical ones")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--cyclic", options.cyclic, "Ranks are dealt out to as many nodes in turn");
  app.add_flag("--in-place", options.in_place, "Input and output are one buffer");
  app.add_flag("--block", options.block, "1 bit: a scale for each block, inside the records");
  app.add_option("--format", options.format, "Of the drawing")
      ->check(CLI::IsMember({"text", "chrome", "svg"}));
  app.add_option("--mbps", options.mbps, "Simulate on links of so many Mbit/s")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--us", options.us, "One-way delay of those links")->check(CLI::NonNegativeNumber);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error);
  }
  std::string text;
  if (const Status status = show_schedule(options, &text); !status.ok()) {
    std::fprintf(stderr, "bitrail schedule: %s\n", status.text().c_str());
    return 1;
  }
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace bitrail::tool
