// One collective at one size: its buffers, how to call it, how to check it.
#pragma once

#include <bitrail/bitrail.h>

#include <cstddef>
#include <memory>

#include "tools/bitrail/perf/options.h"

namespace bitrail::tool {

class Case {
 public:
  virtual ~Case() = default;

  virtual bool has_in_place() const = 0;
  // Fills the inputs, spoils the outputs, forgets what earlier calls left (error feedback).
  virtual bitrail_status_t prepare(bool in_place) = 0;
  virtual bitrail_status_t call(bool in_place) = 0;
  // After prepare and exactly one call: elements that are wrong, or for a lossy collective the
  // relative Euclidean error against the exact result. This rank's figure. May talk to other ranks.
  virtual bitrail_status_t check(bool in_place, double* figure) = 0;
  // Checksum of all buffers that a call may write.
  virtual uint64_t checksum() const = 0;

  // Columns.
  size_t bytes = 0, count = 0;
  bool lossy = false, reduces = false, rooted = false;
  // Bytes that every rank must send for each byte of `bytes` when nothing is compressed.
  double bus_factor = 0;
};

// `bytes` is rounded to whole elements, at least one (per rank where the collective splits).
bitrail_status_t make_exact_case(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                                 std::unique_ptr<Case>* result);
bitrail_status_t make_onebit_case(bitrail_comm_t comm, const PerfOptions& options, size_t bytes,
                                  std::unique_ptr<Case>* result);

uint64_t checksum_bytes(const void* data, size_t bytes);

}  // namespace bitrail::tool
