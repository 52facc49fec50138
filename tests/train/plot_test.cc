#include "tools/train/plot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace bitrail::train {
namespace {

Plot TwoLines() {
  return {"a < b",
          "step",
          "loss",
          {{"first", {4, 3, 2, 1}, {}}, {"second & more", {2, 2}, {0.5, 0.5}}}};
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

TEST(Plot, SmoothIsTheMeanAroundEachStep) {
  EXPECT_EQ(Smooth({1, 2, 6, 3}, 1), (std::vector<double>{1, 2, 6, 3}));
  EXPECT_EQ(Smooth({1, 2, 6, 4}, 3), (std::vector<double>{1.5, 3, 4, 5}));
  EXPECT_TRUE(Smooth({}, 3).empty());
}

TEST(Plot, AxesHoldTheLinesButNotADivergedOne) {
  Plot plot = TwoLines();
  plot.series.push_back({"diverged", {4, 1e30, std::nan(""), INFINITY}, {}});
  const Axes axes = MakeAxes(plot);
  EXPECT_EQ(axes.x_end, 4);
  EXPECT_LT(axes.y_low, 1);
  EXPECT_GE(axes.y_high, 4);
  EXPECT_LT(axes.y_high, 7);
  for (const double tick : {axes.x_tick, axes.y_tick}) EXPECT_GT(tick, 0);
}

TEST(Plot, SvgHasAFrameALegendAndALineEach) {
  const std::string svg = SvgPlot(TwoLines());
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\""), 0U);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_EQ(Count(svg, "<polyline"), 2U);
  EXPECT_EQ(Count(svg, "<polygon"), 1U);
  EXPECT_EQ(Count(svg, ">first</text>"), 1U);
  EXPECT_EQ(Count(svg, ">second &amp; more</text>"), 1U);
  EXPECT_EQ(Count(svg, "a &lt; b"), 2U);  // title and heading
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(Plot, LongSeriesAreThinnedOut) {
  Plot plot{"t", "x", "y", {{"s", std::vector<double>(100000, 1.0), {}}}};
  EXPECT_LT(SvgPlot(plot).size(), 20000U);
}

TEST(Plot, TextHasAMarkForEachSeries) {
  const std::string text = TextPlot(TwoLines(), 40, 10);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 10 + 2 + 2);
  EXPECT_GE(Count(text, "*"), 4U);
  EXPECT_NE(text.find("o second & more"), std::string::npos);
}

TEST(Plot, NothingToDrawIsNoError) {
  for (const Plot& plot :
       {Plot{"t", "x", "y", {}}, Plot{"t", "x", "y", {{"s", {}, {}}}},
        Plot{"t", "x", "y", {{"s", {NAN, NAN}, {}}}}, Plot{"t", "x", "y", {{"s", {3}, {}}}}}) {
    EXPECT_FALSE(SvgPlot(plot).empty());
    EXPECT_FALSE(TextPlot(plot, 20, 5).empty());
  }
}

}  // namespace
}  // namespace bitrail::train
