// What the benchmarks of optimizers share: a job, statuses, times.
#pragma once

#include <bitrail/bitrail.h>

#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "runtime/common/clock.h"
#include "runtime/common/status.h"

namespace bitrail::tools {

struct Job {
  bitrail_comm_t comm = nullptr;
  int rank = 0, ranks = 1;

  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() { (void)bitrail_comm_destroy(comm); }
};

inline Status Check(bitrail_status_t code) {
  if (code == BITRAIL_OK) return {};
  return {code, bitrail_last_error()};
}

inline Status Counters(const Job& job, bitrail_counters_t* counters) {
  *counters = {};
  counters->struct_size = sizeof *counters;
  return Check(bitrail_comm_counters(job.comm, counters));
}

// Seconds until the slowest rank is done.
inline Status Timed(const Job& job, const std::function<Status()>& run, nlohmann::json* seconds) {
  BITRAIL_TRY(Check(bitrail_barrier(job.comm, nullptr)));
  const int64_t start = now_ns();
  BITRAIL_TRY(run());
  BITRAIL_TRY(Check(bitrail_barrier(job.comm, nullptr)));
  seconds->push_back(static_cast<double>(now_ns() - start) * 1e-9);
  return {};
}

// Joins the job and runs; rank 0 prints the result. The exit status.
inline int RunJob(const char* name, const std::function<Status(Job&, nlohmann::json*)>& run) {
  Job job;
  nlohmann::json result;
  Status status;
  try {
    status = Check(bitrail_comm_create(&job.comm, nullptr));
    if (status.ok()) {
      job.rank = bitrail_comm_rank(job.comm);
      job.ranks = bitrail_comm_world_size(job.comm);
      status = run(job, &result);
    }
    if (status.ok() && job.rank == 0) std::puts(result.dump().c_str());
  } catch (const std::exception& error) {  // no memory
    status = Status(BITRAIL_ERR_SYSTEM, error.what());
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench %s: %s\n", name, status.text().c_str());
  return 1;
}

}  // namespace bitrail::tools
