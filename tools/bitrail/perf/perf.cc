#include "tools/bitrail/perf/perf.h"

#include <bitrail/bitrail.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "runtime/common/clock.h"
#include "tools/bitrail/perf/case.h"
#include "tools/bitrail/perf/link_perf.h"
#include "tools/bitrail/perf/measure.h"
#include "tools/bitrail/perf/options.h"
#include "tools/bitrail/perf/report.h"

namespace bitrail::tool {
namespace {

int complain(int rank, bitrail_status_t status, const char* text) {
  std::fputs(
      fmt::format("bitrail perf: rank {}: {}: {}\n", rank, bitrail_status_string(status), text)
          .c_str(),
      stderr);
  return 1;
}

bitrail_status_t make_case(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                           std::unique_ptr<Case>* subject) {
  return options.algo == "onebit" ? make_onebit_case(comm, options, bytes, subject)
                                  : make_exact_case(comm, options, bytes, subject);
}

// An error was returned: from here on nothing may write into the buffers.
bool buffers_stay(const Case* subject) {
  const uint64_t before = subject->checksum();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return subject->checksum() == before;
}

int fail(bitrail_comm_t comm, const PerfOptions& options, const Case* subject,
         bitrail_status_t status) {
  const std::string text = bitrail_last_error();
  const int rank = bitrail_comm_rank(comm);
  complain(rank, status, text.c_str());
  if (!options.watch || subject == nullptr) return 1;
  const bool stay = buffers_stay(subject);
  std::fputs(fmt::format("bitrail perf: rank {}: buffers {} in the second after the error\n", rank,
                         stay ? "unchanged" : "CHANGED")
                 .c_str(),
             stderr);
  return stay ? 1 : 3;
}

// The smallest size again and again, until a signal or an error ends it.
int loop(bitrail_comm_t comm, const PerfOptions& options) {
  std::unique_ptr<Case> subject;
  bitrail_status_t status = make_case(comm, options, options.min_bytes, &subject);
  if (status == BITRAIL_OK) status = subject->prepare(false);
  if (status != BITRAIL_OK) return fail(comm, options, subject.get(), status);
  const bool speaks = bitrail_comm_rank(comm) == 0;
  int64_t calls = 0, reported = 0, last = now_ns();
  for (;;) {
    status = subject->call(false);
    if (status != BITRAIL_OK) return fail(comm, options, subject.get(), status);
    calls++;
    const int64_t now = now_ns();
    if (!speaks || (calls > 1 && now - last < 1'000'000'000)) continue;
    std::fputs(
        fmt::format("{} calls of {} bytes, {:.2f} us each\n", calls, subject->bytes,
                    static_cast<double>(now - last) / 1e3 / static_cast<double>(calls - reported))
            .c_str(),
        stdout);
    std::fflush(stdout);
    last = now;
    reported = calls;
  }
}

// A half of an allreduce as a collective of its own, on the same array.
bitrail_status_t measure_half(bitrail_comm_t comm, const PerfOptions& options, const char* half,
                              size_t bytes, Figures* figures) {
  PerfOptions changed = options;
  changed.collective = half;
  std::unique_ptr<Case> subject;
  const bitrail_status_t status = make_case(comm, changed, bytes, &subject);
  return status == BITRAIL_OK ? measure(comm, changed, subject.get(), false, figures) : status;
}

bitrail_status_t measure_size(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                              std::unique_ptr<Case>* subject, Row* row) {
  bitrail_status_t status = make_case(comm, options, bytes, subject);
  if (status != BITRAIL_OK) return status;
  const Case& made = **subject;
  *row = {made.bytes, made.count, made.lossy, made.reduces, made.rooted, {}, {}, {}, {}};
  status = measure(comm, options, subject->get(), false, &row->out_of_place);
  if (status == BITRAIL_OK && made.has_in_place() && !options.out_of_place_only)
    status = measure(comm, options, subject->get(), true, &row->in_place);
  if (status == BITRAIL_OK && options.phases)
    status = measure_half(comm, options, "reduce_scatter", bytes, &row->reduce_scatter);
  if (status == BITRAIL_OK && options.phases)
    status = measure_half(comm, options, "allgather", bytes, &row->allgather);
  return status;
}

int sweep(bitrail_comm_t comm, const PerfOptions& options) {
  const bool speaks = bitrail_comm_rank(comm) == 0;
  nlohmann::json rows = nlohmann::json::array();
  bool correct = true;
  if (speaks) print_header(comm, options);
  for (size_t bytes = options.min_bytes; bytes <= options.max_bytes;) {
    std::unique_ptr<Case> subject;
    Row row;
    const bitrail_status_t status = measure_size(comm, options, bytes, &subject, &row);
    if (status != BITRAIL_OK) return fail(comm, options, subject.get(), status);
    if (speaks) print_row(options, row);
    rows.push_back(row_json(comm, options, row));
    if (!row.lossy) correct &= row.out_of_place.checked <= 0 && row.in_place.checked <= 0;
    bytes = options.step_bytes > 0 ? bytes + options.step_bytes
                                   : bytes * static_cast<size_t>(options.step_factor);
    if (bytes == 0) break;  // factors do not move a size of 0
  }
  if (speaks && !options.json_file.empty()) {
    std::ofstream file(options.json_file);
    file << rows.dump(1) << '\n';
    if (!file.flush()) {
      std::fputs(fmt::format("bitrail perf: cannot write {}\n", options.json_file).c_str(), stderr);
      return 1;
    }
  }
  const bool compared = options.check && options.algo != "onebit";
  if (speaks && compared) std::fputs(correct ? "# all correct\n" : "# WRONG results\n", stdout);
  return correct ? 0 : 1;
}

}  // namespace

int perf_main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "bw" || what == "lat") return link_perf_main(argc, argv);
  PerfOptions options;
  int exit_code = 0;
  if (!parse_perf_options(argc, argv, &options, &exit_code)) return exit_code;
  if (!options.algo.empty() && options.algo != "onebit") {
    const std::string forced = options.collective + ":" + options.algo;
    setenv("BITRAIL_ALGO", forced.c_str(), 1);  // before any thread is there
  }
  if (!options.transport.empty()) setenv("BITRAIL_TRANSPORT", options.transport.c_str(), 1);
  bitrail_comm_t comm = nullptr;
  const bitrail_status_t status = bitrail_comm_create(&comm, nullptr);
  if (status != BITRAIL_OK) return complain(-1, status, bitrail_last_error());
  exit_code = options.loop ? loop(comm, options) : sweep(comm, options);
  bitrail_comm_destroy(comm);
  return exit_code;
}

}  // namespace bitrail::tool
