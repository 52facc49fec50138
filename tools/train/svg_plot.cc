// The SVG half of plot.h.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

#include "tools/train/plot.h"

namespace bitrail::train {
namespace {

// Pixels of the picture, and of the frame that the lines are drawn in.
constexpr double kWidth = 860, kHeight = 460;
constexpr double kLeft = 70, kRight = 660, kTop = 44, kBottom = 400;
// A line has at most this many points: more cannot be seen and make the file long.
constexpr size_t kMaxPoints = 400;

struct Pen {
  const char *colour, *dashes;
};
constexpr Pen kPens[] = {{"#000000", ""},         {"#0072b2", "7 3"}, {"#d55e00", "2 2"},
                         {"#009e73", "10 3 2 3"}, {"#cc79a7", "4 4"}, {"#e69f00", "12 4"},
                         {"#56b4e9", "1 3"}};

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

double X(const Axes& axes, double step) { return kLeft + (kRight - kLeft) * step / axes.x_end; }

// Cut to the frame.
double Y(const Axes& axes, double value) {
  const double share = (axes.y_high - value) / (axes.y_high - axes.y_low);
  return kTop + (kBottom - kTop) * std::clamp(share, 0.0, 1.0);
}

std::string Line(double x1, double y1, double x2, double y2, const char* colour) {
  return fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\"/>\n", x1, y1, x2,
      y2, colour);
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     Escaped(text));
}

// Multiples of `tick` in [low, high].
std::vector<double> Ticks(double low, double high, double tick) {
  std::vector<double> ticks;
  const auto last = static_cast<int64_t>(std::floor(high / tick));
  for (auto i = static_cast<int64_t>(std::ceil(low / tick)); i <= last; i++)
    ticks.push_back(static_cast<double>(i) * tick);
  return ticks;
}

std::string Frame(const Plot& plot, const Axes& axes) {
  std::string out;
  const int y_digits = std::max(0, static_cast<int>(std::ceil(-std::log10(axes.y_tick) - 1e-9)));
  for (const double y : Ticks(axes.y_low, axes.y_high, axes.y_tick)) {
    out += Line(kLeft, Y(axes, y), kRight, Y(axes, y), "#dddddd");
    out += Text(kLeft - 8, Y(axes, y) + 4, "end", fmt::format("{:.{}f}", y, y_digits));
  }
  for (const double x : Ticks(0, axes.x_end, axes.x_tick)) {
    out += Line(X(axes, x), kBottom, X(axes, x), kBottom + 5, "#333333");
    out += Text(X(axes, x), kBottom + 20, "middle", fmt::format("{:g}", x));
  }
  out += Line(kLeft, kTop, kLeft, kBottom, "#333333");
  out += Line(kLeft, kBottom, kRight, kBottom, "#333333");
  out += Text((kLeft + kRight) / 2, kBottom + 44, "middle", plot.x_label);
  out += fmt::format(
      "<text transform=\"translate(20 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      (kTop + kBottom) / 2, Escaped(plot.y_label));
  out +=
      fmt::format("<text x=\"{:.1f}\" y=\"26\" text-anchor=\"middle\" font-size=\"16\">{}</text>\n",
                  (kLeft + kRight) / 2, Escaped(plot.title));
  return out;
}

// The points of `values` from the first to the last, or back.
std::string Points(const Axes& axes, const std::vector<double>& values, bool back) {
  const size_t stride = std::max<size_t>(1, values.size() / kMaxPoints);
  std::string out;
  for (size_t n = 0; n < values.size(); n += stride) {
    const size_t i = back ? values.size() - 1 - n : n;
    if (!std::isfinite(values[i])) continue;
    out += fmt::format("{:.1f},{:.1f} ", X(axes, static_cast<double>(i + 1)), Y(axes, values[i]));
  }
  return out;
}

std::string Curve(const Axes& axes, const Series& series, const Pen& pen) {
  std::string out;
  if (!series.deviation.empty()) {
    std::vector<double> low = series.mean;
    std::vector<double> high = series.mean;
    for (size_t i = 0; i < low.size(); i++) {
      low[i] -= series.deviation[i];
      high[i] += series.deviation[i];
    }
    out += fmt::format("<polygon points=\"{}{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n",
                       Points(axes, low, false), Points(axes, high, true), pen.colour);
  }
  out += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" "
      "stroke-dasharray=\"{}\"/>\n",
      Points(axes, series.mean, false), pen.colour, pen.dashes);
  return out;
}

}  // namespace

std::string SvgPlot(const Plot& plot) {
  const Axes axes = MakeAxes(plot);
  std::string names;
  for (const Series& series : plot.series) names += (names.empty() ? "" : ", ") + series.name;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<title>{}</title>\n<desc>{} over {}: "
      "{}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight, Escaped(plot.title), Escaped(plot.y_label), Escaped(plot.x_label),
      Escaped(names));
  out += Frame(plot, axes);
  for (size_t s = 0; s < plot.series.size(); s++) {
    const Pen& pen = kPens[s % std::size(kPens)];
    const double y = kTop + 10 + 24 * static_cast<double>(s);
    out += Curve(axes, plot.series[s], pen);
    out += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
        "stroke-width=\"2\" stroke-dasharray=\"{}\"/>\n",
        kRight + 16, y, kRight + 56, y, pen.colour, pen.dashes);
    out += Text(kRight + 64, y + 4, "start", plot.series[s].name);
  }
  return out + "</svg>\n";
}

}  // namespace bitrail::train
