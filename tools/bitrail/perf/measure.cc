#include "tools/bitrail/perf/measure.h"

#include <algorithm>
#include <vector>

#include "runtime/common/clock.h"

namespace bitrail::tool {
namespace {

constexpr int64_t kIterationNs = 200'000;  // timer and barrier skew are small against this
constexpr int kMaxCalls = 100;

#define PERF_TRY(expression)                                   \
  do {                                                         \
    const bitrail_status_t perf_try_status = (expression);     \
    if (perf_try_status != BITRAIL_OK) return perf_try_status; \
  } while (0)

bitrail_status_t over_ranks(bitrail_comm_t comm, bitrail_op_t op, double* values, size_t count) {
  return bitrail_allreduce(comm, values, values, count, BITRAIL_FLOAT64, op, nullptr);
}

bitrail_status_t sent_bytes(bitrail_comm_t comm, double* bytes) {
  bitrail_counters_t counters = {};
  counters.struct_size = sizeof counters;
  PERF_TRY(bitrail_comm_counters(comm, &counters));
  *bytes = static_cast<double>(counters.wire_bytes_sent);
  return BITRAIL_OK;
}

bitrail_status_t repeat(Case* subject, bool in_place, int calls) {
  for (int call = 0; call < calls; call++) PERF_TRY(subject->call(in_place));
  return BITRAIL_OK;
}

// Calls in one iteration: as asked, or as many as the slowest rank fits into kIterationNs.
bitrail_status_t choose_calls(bitrail_comm_t comm, const PerfOptions& options, Case* subject,
                              bool in_place, int* calls) {
  PERF_TRY(repeat(subject, in_place, options.warmup));
  *calls = options.calls;
  if (options.calls > 0) return BITRAIL_OK;
  PERF_TRY(bitrail_barrier(comm, nullptr));
  const int64_t start = now_ns();
  PERF_TRY(subject->call(in_place));
  auto slowest = static_cast<double>(now_ns() - start);
  PERF_TRY(over_ranks(comm, BITRAIL_MAX, &slowest, 1));
  const auto fit = static_cast<int>(static_cast<double>(kIterationNs) / std::max(slowest, 1.0));
  *calls = std::clamp(fit, 1, kMaxCalls);
  return BITRAIL_OK;
}

bitrail_status_t check(bitrail_comm_t comm, Case* subject, bool in_place, Figures* figures) {
  PERF_TRY(subject->prepare(in_place));
  PERF_TRY(subject->call(in_place));
  PERF_TRY(subject->check(in_place, &figures->checked));
  return over_ranks(comm, subject->lossy ? BITRAIL_MAX : BITRAIL_SUM, &figures->checked, 1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

}  // namespace

bitrail_status_t measure(bitrail_comm_t comm, const PerfOptions& options, Case* subject,
                         bool in_place, Figures* figures) {
  if (options.check) PERF_TRY(check(comm, subject, in_place, figures));
  PERF_TRY(subject->prepare(in_place));
  int calls = 1;
  PERF_TRY(choose_calls(comm, options, subject, in_place, &calls));

  std::vector<double> times;
  double before = 0, after = 0;
  for (int iteration = 0; iteration < options.iterations; iteration++) {
    PERF_TRY(bitrail_barrier(comm, nullptr));
    PERF_TRY(sent_bytes(comm, &before));
    const int64_t start = now_ns();
    PERF_TRY(repeat(subject, in_place, calls));
    times.push_back(static_cast<double>(now_ns() - start) / calls);
    PERF_TRY(sent_bytes(comm, &after));
  }
  PERF_TRY(over_ranks(comm, BITRAIL_MAX, times.data(), times.size()));
  figures->wire_bytes = (after - before) / calls;
  PERF_TRY(over_ranks(comm, BITRAIL_MAX, &figures->wire_bytes, 1));

  const double ns = median(std::move(times));
  const auto bytes = static_cast<double>(subject->bytes);
  figures->present = true;
  figures->time_us = ns / 1e3;
  figures->algbw = bytes / ns;  // bytes a nanosecond are GB/s
  figures->busbw = figures->algbw * subject->bus_factor;
  figures->wire_busbw = figures->wire_bytes / ns;
  figures->ratio = figures->wire_bytes > 0 ? bytes * subject->bus_factor / figures->wire_bytes : 0;
  return BITRAIL_OK;
}

}  // namespace bitrail::tool
