// What several runs of a job tell together: one row an optimizer, over all its seeds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/train/options.h"
#include "tools/train/plot.h"
#include "tools/train/report.h"

namespace bitrail::train {

struct RunResult {
  OptimizerKind optimizer = OptimizerKind::adam;
  Summary summary;
  std::vector<double> loss;  // of each step
};

struct Spread {
  double mean = 0, deviation = 0;  // the sample's standard deviation; 0 with one value
};
Spread SpreadOf(const std::vector<double>& values);

struct Row {
  OptimizerKind optimizer = OptimizerKind::adam, baseline = OptimizerKind::adam;
  int64_t runs = 0, diverged = 0;
  Spread final_loss, held_out;  // of the runs that did not diverge
  // The held-out loss (the final one without evaluation) against the baseline's: its share above,
  // and the difference in standard deviations, the larger of the two; NaN where there is none.
  double excess = 0, deviations = 0;
  // Means over the seeds.
  Phase full, compressed, local;
  double tokens_per_second = 0;
  double volume_ratio = 0;  // the baseline's bytes of a whole run over these
  double speedup = 0;       // the baseline's time of a whole run over this
  double state_bytes = 0;   // a parameter
};

// lamb for onebit-lamb; adam for the rest if it ran, else the first.
OptimizerKind BaselineOf(OptimizerKind optimizer, const std::vector<RunResult>& results);
// In the order of the runs.
std::vector<Row> Compare(const std::vector<RunResult>& results);

// For people; for programs, one line; and the losses, smoothed.
std::string Table(const std::vector<Row>& rows, const std::vector<RunResult>& results);
std::string ComparisonJson(const std::vector<Row>& rows);
Plot LossPlot(const std::vector<RunResult>& results);

}  // namespace bitrail::train
