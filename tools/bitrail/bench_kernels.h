// `bitrail bench kernels`: the host kernels against memcpy in the same process.
#pragma once

#include <string>

namespace bitrail::tools {

// Prints a table (name, value, bar, ok) and, unless `json_path` is empty, writes a JSON list of
// {name, value, unit, bar, ok} there (bar null: shown for information). `quick` takes fewer
// repetitions, well under 50 s on 2 cores. Values are medians of runs that alternate with memcpy.
// Returns the exit status: 0 when all bars hold, 1 when one does not, 2 when the file cannot be
// written or memory is short.
int BenchKernels(bool quick, const std::string& json_path);

}  // namespace bitrail::tools
