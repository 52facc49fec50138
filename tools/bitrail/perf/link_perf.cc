#include "tools/bitrail/perf/link_perf.h"

#include <fmt/core.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/bitrail/perf/link.h"
#include "tools/bitrail/perf/link_options.h"
#include "tools/bitrail/perf/stream.h"

namespace bitrail::tool {
namespace {

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

int complain(const std::string& text) {
  std::fputs(fmt::format("bitrail perf: {}\n", text).c_str(), stderr);
  return 1;
}

void print_header(const Link& link, const LinkOptions& options) {
  print(fmt::format("# bitrail {}: transport {}, to {}{}\n", options.latency ? "lat" : "bw",
                    link.transport(), link.peer_address(),
                    options.latency ? "" : fmt::format(", window {}", options.window)));
  if (options.latency) {
    print(fmt::format("{:>10} {:>12} {:>12} {:>12} {:>15} {:>12} {:>12}\n", "#bytes", "#iterations",
                      "t_min[usec]", "t_max[usec]", "t_typical[usec]", "t_avg[usec]", "99%[usec]"));
  } else {
    print(fmt::format("{:>10} {:>12} {:>16} {:>19} {:>13}\n", "#bytes", "#iterations",
                      "BW peak[MB/sec]", "BW average[MB/sec]", "MsgRate[Mpps]"));
  }
}

void print_row(const LinkOptions& options, const StreamFigures& row) {
  if (options.latency) {
    print(fmt::format("{:>10} {:>12} {:>12.2f} {:>12.2f} {:>15.2f} {:>12.2f} {:>12.2f}\n",
                      row.bytes, row.iterations, row.t_min, row.t_max, row.t_typical, row.t_average,
                      row.t_99));
  } else {
    print(fmt::format("{:>10} {:>12} {:>16.2f} {:>19.2f} {:>13.6f}\n", row.bytes, row.iterations,
                      row.peak, row.average, row.message_rate));
  }
}

nlohmann::json row_json(const Link& link, const LinkOptions& options, const StreamFigures& row) {
  nlohmann::json json = {{"test", options.latency ? "lat" : "bw"},
                         {"transport", link.transport()},
                         {"bytes", row.bytes},
                         {"iterations", row.iterations}};
  if (options.check) json["wrong"] = row.wrong;
  if (options.latency) {
    json["t_min_us"] = row.t_min;
    json["t_max_us"] = row.t_max;
    json["t_typical_us"] = row.t_typical;
    json["t_avg_us"] = row.t_average;
    json["t_99_us"] = row.t_99;
  } else {
    json["window"] = options.window;
    json["peak_mb"] = row.peak;
    json["average_mb"] = row.average;
    json["message_rate_mpps"] = row.message_rate;
  }
  return json;
}

int sweep(Link* link, const LinkOptions& options) {
  const bool speaks = link->rank() == 0;
  if (speaks) print_header(*link, options);
  nlohmann::json rows = nlohmann::json::array();
  uint64_t wrong = 0;
  for (size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    StreamFigures row;
    const Status status = options.latency ? measure_latency(link, options, bytes, &row)
                                          : measure_bandwidth(link, options, bytes, &row);
    if (!status.ok())
      return complain(fmt::format("rank {}: {}: {}", link->rank(),
                                  bitrail_status_string(status.code()), status.text()));
    if (speaks) print_row(options, row);
    rows.push_back(row_json(*link, options, row));
    wrong += row.wrong;
    bytes *= static_cast<size_t>(options.step_factor);
    if (bytes == 0) break;  // factors do not move a size of 0
  }
  if (speaks && options.check)
    print(wrong == 0 ? std::string("# all correct\n") : fmt::format("# {} bytes WRONG\n", wrong));
  if (speaks && !options.json_file.empty()) {
    std::ofstream file(options.json_file);
    file << rows.dump(1) << '\n';
    if (!file.flush()) return complain(fmt::format("cannot write {}", options.json_file));
  }
  const Status left = link->leave();
  if (!left.ok()) return complain(left.text());
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int link_perf_main(int argc, char** argv) {
  LinkOptions options;
  int exit_code = 0;
  if (!parse_link_options(argc, argv, &options, &exit_code)) return exit_code;
  std::unique_ptr<Link> link;
  const Status status = Link::open(options.transport, &link);
  if (!status.ok())
    return complain(fmt::format("{}: {}", bitrail_status_string(status.code()), status.text()));
  return sweep(link.get(), options);
}

}  // namespace bitrail::tool
