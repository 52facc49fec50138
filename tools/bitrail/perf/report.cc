#include "tools/bitrail/perf/report.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>

namespace bitrail::tool {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

std::string number(double value, bool present) {
  if (!present) return "N/A";
  return fmt::format(fmt::runtime(value >= 1000 ? "{:.0f}" : "{:.2f}"), value);
}

std::string figures_text(const Figures& figures, bool lossy) {
  const bool present = figures.present;
  std::string text = fmt::format("  {:>9} {:>7} {:>7}", number(figures.time_us, present),
                                 number(figures.algbw, present), number(figures.busbw, present));
  const bool checked = present && figures.checked >= 0;
  if (!lossy)
    return text + fmt::format(" {:>7}", checked ? fmt::format("{:.0f}", figures.checked) : "N/A");
  text += fmt::format(" {:>6} {:>10} {:>7}", number(figures.ratio, present),
                      present ? fmt::format("{:.0f}", figures.wire_bytes) : "N/A",
                      present ? fmt::format("{:.3f}", figures.wire_busbw) : "N/A");
  return text + fmt::format(" {:>9}", checked ? fmt::format("{:.3e}", figures.checked) : "N/A");
}

nlohmann::json figures_json(const Figures& figures, bool lossy) {
  if (!figures.present) return nullptr;
  nlohmann::json json = {
      {"time_us", figures.time_us},       {"algbw_gbps", figures.algbw},
      {"busbw_gbps", figures.busbw},      {"ratio", figures.ratio},
      {"wire_bytes", figures.wire_bytes}, {"wire_busbw_gbps", figures.wire_busbw}};
  json[lossy ? "relative_error" : "wrong"] =
      figures.checked >= 0 ? nlohmann::json(figures.checked) : nlohmann::json(nullptr);
  return json;
}

}  // namespace

void print_header(bitrail_comm_t comm, const PerfOptions& options) {
  const bool lossy = options.algo == "onebit";
  const std::string algo = options.algo.empty() ? "chosen" : options.algo;
  print(fmt::format(
      "# bitrail {} {}: {} ranks, launcher {}, transport {}, algorithm {}{}\n", bitrail_version(),
      options.collective, bitrail_comm_world_size(comm), bitrail_comm_launcher(comm),
      bitrail_comm_transport(comm), algo,
      lossy ? (options.scale == BITRAIL_SCALE_BLOCK ? ", block scales" : ", segment scales") : ""));
  print("# medians of the slowest rank's times; busbw counts uncompressed bytes\n");
  const std::string names =
      lossy ? "  {:>9} {:>7} {:>7} {:>6} {:>10} {:>7} {:>9}" : "  {:>9} {:>7} {:>7} {:>7}";
  const auto group = [&](bool units) {
    if (lossy)
      return units ? fmt::format(fmt::runtime(names), "(us)", "(GB/s)", "(GB/s)", "", "(B)",
                                 "(GB/s)", "(L2)")
                   : fmt::format(fmt::runtime(names), "time", "algbw", "busbw", "ratio", "wire",
                                 "wirebw", "error");
    return units ? fmt::format(fmt::runtime(names), "(us)", "(GB/s)", "(GB/s)", "")
                 : fmt::format(fmt::runtime(names), "time", "algbw", "busbw", "#wrong");
  };
  const size_t width = group(false).size();
  print(fmt::format("#{:>47}{:>{}}{:>{}}\n", "", "out-of-place", width, "in-place", width));
  print(fmt::format("#{:>11} {:>12} {:>9} {:>6} {:>5}{}{}\n", "size", "count", "type", "redop",
                    "root", group(false), group(false)));
  print(fmt::format("#{:>11} {:>12} {:>9} {:>6} {:>5}{}{}\n", "(B)", "(elements)", "", "", "",
                    group(true), group(true)));
}

void print_row(const PerfOptions& options, const Row& row) {
  const char* op = row.lossy ? "mean" : (row.reduces ? op_name(options.op) : "none");
  print(fmt::format("{:>12} {:>12} {:>9} {:>6} {:>5}{}{}\n", row.bytes, row.count,
                    type_name(options.type), op, row.rooted ? options.root : -1,
                    figures_text(row.out_of_place, row.lossy),
                    figures_text(row.in_place, row.lossy)));
  if (row.reduce_scatter.present)
    print(fmt::format("#{:>11} phases: reduce-scatter {} us, all-gather {} us\n", "",
                      number(row.reduce_scatter.time_us, true),
                      number(row.allgather.time_us, true)));
}

nlohmann::json row_json(bitrail_comm_t comm, const PerfOptions& options, const Row& row) {
  return {{"collective", options.collective},
          {"ranks", bitrail_comm_world_size(comm)},
          {"launcher", bitrail_comm_launcher(comm)},
          {"transport", bitrail_comm_transport(comm)},
          {"algo", options.algo},
          {"size", row.bytes},
          {"count", row.count},
          {"type", type_name(options.type)},
          {"redop", row.lossy ? "mean" : (row.reduces ? op_name(options.op) : "none")},
          {"root", row.rooted ? options.root : -1},
          {"out_of_place", figures_json(row.out_of_place, row.lossy)},
          {"in_place", figures_json(row.in_place, row.lossy)},
          {"reduce_scatter", figures_json(row.reduce_scatter, row.lossy)},
          {"allgather", figures_json(row.allgather, row.lossy)}};
}

}  // namespace bitrail::tool
