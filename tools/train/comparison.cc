#include "tools/train/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace bitrail::train {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::vector<const RunResult*> RunsOf(OptimizerKind optimizer,
                                     const std::vector<RunResult>& results) {
  std::vector<const RunResult*> runs;
  for (const RunResult& result : results)
    if (result.optimizer == optimizer) runs.push_back(&result);
  return runs;
}

std::vector<OptimizerKind> Optimizers(const std::vector<RunResult>& results) {
  std::vector<OptimizerKind> kinds;
  for (const RunResult& result : results)
    if (std::find(kinds.begin(), kinds.end(), result.optimizer) == kinds.end())
      kinds.push_back(result.optimizer);
  return kinds;
}

Phase MeanPhase(const std::vector<const RunResult*>& runs, Phase Summary::*phase) {
  Phase mean;
  const auto share = 1 / static_cast<double>(runs.size());
  for (const RunResult* run : runs) {
    const Phase& p = run->summary.*phase;
    mean.steps = std::max(mean.steps, p.steps);
    mean.step_ms += share * p.step_ms;
    mean.compute_ms += share * p.compute_ms;
    mean.comm_ms += share * p.comm_ms;
    mean.wire_bytes += share * p.wire_bytes;
  }
  return mean;
}

double Mean(const std::vector<const RunResult*>& runs, double Summary::*member) {
  double sum = 0;
  for (const RunResult* run : runs) sum += run->summary.*member;
  return sum / static_cast<double>(runs.size());
}

const Spread& Judged(const Row& row) {
  return std::isfinite(row.held_out.mean) ? row.held_out : row.final_loss;
}

Row MakeRow(OptimizerKind optimizer, const std::vector<RunResult>& results) {
  const auto runs = RunsOf(optimizer, results);
  Row row;
  row.optimizer = optimizer;
  row.baseline = BaselineOf(optimizer, results);
  row.runs = static_cast<int64_t>(runs.size());
  std::vector<double> final_loss;
  std::vector<double> held_out;
  for (const RunResult* run : runs) {
    if (run->summary.diverged) {
      row.diverged++;
      continue;
    }
    final_loss.push_back(run->summary.final_loss);
    held_out.push_back(run->summary.held_out_loss);
  }
  row.final_loss = SpreadOf(final_loss);
  row.held_out = SpreadOf(held_out);
  row.full = MeanPhase(runs, &Summary::full);
  row.compressed = MeanPhase(runs, &Summary::compressed);
  row.local = MeanPhase(runs, &Summary::local);
  row.tokens_per_second = Mean(runs, &Summary::tokens_per_second);
  const Summary& first = runs.front()->summary;
  row.state_bytes = static_cast<double>(first.state_bytes) /
                    static_cast<double>(std::max<uint64_t>(1, first.parameters));
  const auto baseline = RunsOf(row.baseline, results);
  row.volume_ratio = Mean(baseline, &Summary::wire_bytes) / Mean(runs, &Summary::wire_bytes);
  row.speedup = Mean(baseline, &Summary::seconds) / Mean(runs, &Summary::seconds);
  return row;
}

std::string Shown(const Spread& spread, int64_t runs) {
  if (!std::isfinite(spread.mean)) return "-";
  if (runs < 2) return fmt::format("{:.4f}", spread.mean);
  return fmt::format("{:.4f} +-{:.4f}", spread.mean, spread.deviation);
}

std::string Milliseconds(const Phase& phase) {
  return phase.steps == 0 ? "-" : fmt::format("{:.1f}", phase.step_ms);
}

std::string Sent(const Phase& phase) { return phase.steps == 0 ? "-" : Bytes(phase.wire_bytes); }

std::string Ratio(double value) {
  return std::isfinite(value) ? fmt::format("{:.2f}", value) : "-";
}

nlohmann::ordered_json ToJson(const Phase& phase) {
  return {{"steps", phase.steps}, {"step_ms", phase.step_ms}, {"wire_bytes", phase.wire_bytes}};
}

}  // namespace

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {kNone, 0};
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  for (const double value : values)
    spread.deviation += (value - spread.mean) * (value - spread.mean);
  spread.deviation = values.size() < 2 ? 0 : std::sqrt(spread.deviation / (count - 1));
  return spread;
}

OptimizerKind BaselineOf(OptimizerKind optimizer, const std::vector<RunResult>& results) {
  const OptimizerKind wanted = IsLamb(optimizer) ? OptimizerKind::lamb : OptimizerKind::adam;
  for (const RunResult& result : results)
    if (result.optimizer == wanted) return wanted;
  return results.front().optimizer;
}

std::vector<Row> Compare(const std::vector<RunResult>& results) {
  std::vector<Row> rows;
  for (const OptimizerKind optimizer : Optimizers(results))
    rows.push_back(MakeRow(optimizer, results));
  for (Row& row : rows) {
    const auto baseline = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.optimizer == row.baseline;
    });
    const Spread& own = Judged(row);
    const Spread& other = Judged(*baseline);
    row.excess = own.mean / other.mean - 1;
    const double deviation = std::max(own.deviation, other.deviation);
    row.deviations = deviation > 0 ? (own.mean - other.mean) / deviation : kNone;
  }
  return rows;
}

std::string Table(const std::vector<Row>& rows, const std::vector<RunResult>& results) {
  const Summary& s = results.front().summary;
  std::string text = fmt::format(
      "\n{} ranks, {} parameters, {} steps, {} seed(s), unigram entropy {:.3f} nat a token\n\n"
      "{:<14} {:>15} {:>15} {:>8} {:>6} {:>13} {:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9}\n"
      "{:<14} {:>15} {:>15} {:>8} {:>6} {:>13} {:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9}\n",
      s.world_size, s.parameters, s.steps, rows.front().runs, s.unigram_entropy, "", "final",
      "held-out", "against", "in", "steps", "ms a", "step", "sent a", "step", "volume", "faster",
      "tokens", "optimizer", "loss", "loss", "baseline", "sd", "full/1b/none", "full", "1-bit",
      "full", "1-bit", "less", "by", "a second");
  for (const Row& row : rows) {
    const bool own = row.baseline == row.optimizer;
    text += fmt::format(
        "{:<14} {:>15} {:>15} {:>8} {:>6} {:>13} {:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>9.0f}\n",
        Name(row.optimizer), Shown(row.final_loss, row.runs), Shown(row.held_out, row.runs),
        own ? "baseline" : fmt::format("{:+.2f}%", 100 * row.excess),
        own || !std::isfinite(row.deviations) ? "" : fmt::format("{:+.1f}", row.deviations),
        fmt::format("{}/{}/{}", row.full.steps, row.compressed.steps, row.local.steps),
        Milliseconds(row.full), Milliseconds(row.compressed), Sent(row.full), Sent(row.compressed),
        Ratio(row.volume_ratio), Ratio(row.speedup), row.tokens_per_second);
    if (row.diverged > 0)
      text += fmt::format("{:<14} diverged with {} of {} seeds (NaN or Inf); not in the means\n",
                          "", row.diverged, row.runs);
  }
  return text +
         "\nBaseline: lamb for onebit-lamb, adam for the rest; volume and time are of whole runs. "
         "sd: difference of the\nheld-out losses in standard deviations over the seeds, the larger "
         "of the two. ms and bytes are rank 0's.\n";
}

std::string ComparisonJson(const std::vector<Row>& rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Row& row : rows)
    list.push_back({{"optimizer", Name(row.optimizer)},
                    {"baseline", Name(row.baseline)},
                    {"runs", row.runs},
                    {"diverged", row.diverged},
                    {"final_loss", row.final_loss.mean},
                    {"final_loss_deviation", row.final_loss.deviation},
                    {"held_out_loss", row.held_out.mean},
                    {"held_out_loss_deviation", row.held_out.deviation},
                    {"excess", row.excess},
                    {"deviations", row.deviations},
                    {"full", ToJson(row.full)},
                    {"compressed", ToJson(row.compressed)},
                    {"local", ToJson(row.local)},
                    {"tokens_per_second", row.tokens_per_second},
                    {"volume_ratio", row.volume_ratio},
                    {"speedup", row.speedup},
                    {"state_bytes_per_parameter", row.state_bytes}});
  return nlohmann::ordered_json{{"comparison", list}}.dump();
}

Plot LossPlot(const std::vector<RunResult>& results) {
  Plot plot{"Training loss", "step", "loss, nat a masked token", {}};
  for (const OptimizerKind optimizer : Optimizers(results)) {
    const auto runs = RunsOf(optimizer, results);
    Series series;
    series.name = Name(optimizer);
    size_t steps = 0;
    for (const RunResult* run : runs) steps = std::max(steps, run->loss.size());
    const size_t window = std::max<size_t>(1, steps / 40) | 1;
    std::vector<std::vector<double>> smooth;
    for (const RunResult* run : runs) smooth.push_back(Smooth(run->loss, window));
    for (size_t i = 0; i < steps; i++) {
      std::vector<double> at;
      for (const std::vector<double>& loss : smooth)
        if (i < loss.size()) at.push_back(loss[i]);
      const Spread spread = SpreadOf(at);
      series.mean.push_back(spread.mean);
      if (runs.size() > 1) series.deviation.push_back(spread.deviation);
    }
    plot.series.push_back(std::move(series));
  }
  return plot;
}

}  // namespace bitrail::train
