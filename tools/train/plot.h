// Line plots of a few series over the same steps, as an SVG file and as text for a terminal.
#pragma once

#include <string>
#include <vector>

namespace bitrail::train {

struct Series {
  std::string name;
  std::vector<double> mean;       // at steps 1, 2, ...; what is not finite is left out
  std::vector<double> deviation;  // around it, drawn as a band; empty: none
};

struct Plot {
  std::string title, x_label, y_label;
  std::vector<Series> series;
};

// Mean over a window of steps around each (an odd number of them), so that a trend can be seen.
std::vector<double> Smooth(const std::vector<double>& values, size_t window);

// A complete SVG document. Lines differ by colour (Okabe and Ito's, told apart by the colour-blind)
// and by dashes (told apart without colour).
std::string SvgPlot(const Plot& plot);

// `width` x `height` characters and a legend below; each series has its own mark.
std::string TextPlot(const Plot& plot, size_t width, size_t height);

// What both draw: ranges and rounded distances between ticks. The y range leaves out what lies
// above 1.5 times the first value of the first series: a run that diverges must not flatten the
// others.
struct Axes {
  double x_end = 1;  // x starts at 0
  double y_low = 0, y_high = 1;
  double x_tick = 1, y_tick = 1;
};
Axes MakeAxes(const Plot& plot);

}  // namespace bitrail::train
