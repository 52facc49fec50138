#include "tools/train/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

namespace bitrail::train {
namespace {

// 1, 2 or 5 times a power of ten, so that `range` has 3 to 8 of it.
double TickOf(double range) {
  const double raw = range / 8;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power) return factor * power;
  return 10 * power;
}

}  // namespace

std::vector<double> Smooth(const std::vector<double>& values, size_t window) {
  const size_t reach = window / 2;
  std::vector<double> smooth(values.size());
  for (size_t i = 0; i < values.size(); i++) {
    const size_t begin = i - std::min(i, reach);
    const size_t end = std::min(values.size(), i + reach + 1);
    double sum = 0;
    for (size_t k = begin; k < end; k++) sum += values[k];
    smooth[i] = sum / static_cast<double>(end - begin);
  }
  return smooth;
}

Axes MakeAxes(const Plot& plot) {
  size_t steps = 1;
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  double ceiling = low;
  for (const Series& series : plot.series) {
    steps = std::max(steps, series.mean.size());
    for (const double value : series.mean) {
      if (!std::isfinite(value)) continue;
      if (std::isinf(ceiling)) ceiling = value + 0.5 * std::abs(value);
      low = std::min(low, value);
      high = std::max(high, std::min(value, ceiling));
    }
  }
  Axes axes;
  axes.x_end = static_cast<double>(steps);
  axes.x_tick = TickOf(axes.x_end);
  if (!(low <= high)) return axes;  // nothing to draw
  const double margin = high > low ? 0.02 * (high - low) : 0.5;
  axes.y_tick = TickOf(high - low + 2 * margin);
  axes.y_low = low - margin;
  axes.y_high = high + margin;
  return axes;
}

std::string TextPlot(const Plot& plot, size_t width, size_t height) {
  constexpr std::string_view kMarks = "*o+x#@%&";
  const Axes axes = MakeAxes(plot);
  std::vector<std::string> rows(height, std::string(width, ' '));
  for (size_t s = 0; s < plot.series.size(); s++) {
    const std::vector<double>& y = plot.series[s].mean;
    for (size_t column = 0; column < width; column++) {
      const auto step = static_cast<size_t>(static_cast<double>(column + 1) * axes.x_end /
                                            static_cast<double>(width));
      const size_t i = std::max<size_t>(step, 1) - 1;
      if (i >= y.size() || !(y[i] >= axes.y_low && y[i] <= axes.y_high)) continue;
      const double share = (axes.y_high - y[i]) / (axes.y_high - axes.y_low);
      const auto row = static_cast<size_t>(share * static_cast<double>(height));
      rows[std::min(row, height - 1)][column] = kMarks[s % kMarks.size()];
    }
  }
  std::string text = fmt::format("{} ({})\n", plot.title, plot.y_label);
  for (size_t row = 0; row < height; row++) {
    const double y = axes.y_high - (static_cast<double>(row) + 0.5) * (axes.y_high - axes.y_low) /
                                       static_cast<double>(height);
    text += fmt::format("{:>8.3f} |{}\n", y, rows[row]);
  }
  text += fmt::format("{:>8} +{}\n{:>10}1{:>{}.0f} {}\n", "", std::string(width, '-'), "",
                      axes.x_end, width - 1, plot.x_label);
  for (size_t s = 0; s < plot.series.size(); s++)
    text += fmt::format("{:>10}{} {}\n", "", kMarks[s % kMarks.size()], plot.series[s].name);
  return text;
}

}  // namespace bitrail::train
