// The table and the JSON rows of `bitrail perf`.
#pragma once

#include <bitrail/bitrail.h>

#include <nlohmann/json.hpp>

#include "tools/bitrail/perf/measure.h"

namespace bitrail::tool {

struct Row {
  size_t bytes = 0, count = 0;
  bool lossy = false, reduces = false, rooted = false;
  Figures out_of_place, in_place;
  Figures reduce_scatter, allgather;  // --phases
};

void print_header(bitrail_comm_t comm, const PerfOptions& options);
void print_row(const PerfOptions& options, const Row& row);
nlohmann::json row_json(bitrail_comm_t comm, const PerfOptions& options, const Row& row);

}  // namespace bitrail::tool
