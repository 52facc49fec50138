#include "tools/train/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace bitrail::train {
namespace {

RunResult MakeResult(OptimizerKind optimizer, double held_out, double bytes, double seconds) {
  RunResult result;
  result.optimizer = optimizer;
  Summary& s = result.summary;
  s.optimizer = Name(optimizer);
  s.steps = 2;
  s.world_size = 4;
  s.parameters = 10;
  s.state_bytes = 120;
  s.final_loss = held_out + 1;
  s.held_out_loss = held_out;
  s.wire_bytes = bytes;
  s.seconds = seconds;
  s.full.steps = 2;
  result.loss = {held_out + 2, held_out + 1};
  return result;
}

TEST(Comparison, SpreadIsTheSamplesDeviation) {
  const Spread spread = SpreadOf({1, 2, 3, 4});
  EXPECT_DOUBLE_EQ(spread.mean, 2.5);
  EXPECT_NEAR(spread.deviation, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(SpreadOf({7}).deviation, 0);
  EXPECT_TRUE(std::isnan(SpreadOf({}).mean));
}

TEST(Comparison, RowsAreAgainstTheFamilysBaseline) {
  const std::vector<Row> rows = Compare({MakeResult(OptimizerKind::adam, 2, 3200, 9),
                                         MakeResult(OptimizerKind::lamb, 4, 3200, 8),
                                         MakeResult(OptimizerKind::onebit_adam, 2.2, 100, 3),
                                         MakeResult(OptimizerKind::onebit_lamb, 4.4, 200, 2)});
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[2].baseline, OptimizerKind::adam);
  EXPECT_EQ(rows[3].baseline, OptimizerKind::lamb);
  EXPECT_NEAR(rows[2].excess, 0.1, 1e-12);
  EXPECT_NEAR(rows[3].excess, 0.1, 1e-12);
  EXPECT_EQ(rows[2].volume_ratio, 32);
  EXPECT_EQ(rows[3].volume_ratio, 16);
  EXPECT_EQ(rows[2].speedup, 3);
  EXPECT_EQ(rows[3].speedup, 4);
  EXPECT_EQ(rows[0].state_bytes, 12);
  EXPECT_TRUE(std::isnan(rows[2].deviations)) << "one seed tells nothing about the spread";
}

TEST(Comparison, SeedsGiveMeansDeviationsAndDistance) {
  std::vector<RunResult> results;
  for (const double noise : {-0.1, 0.0, 0.1}) {
    results.push_back(MakeResult(OptimizerKind::adam, 2 + noise, 3200, 9));
    results.push_back(MakeResult(OptimizerKind::naive_onebit, 2.5 + 0.5 * noise, 100, 3));
  }
  const std::vector<Row> rows = Compare(results);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1].runs, 3);
  EXPECT_NEAR(rows[1].held_out.mean, 2.5, 1e-12);
  EXPECT_NEAR(rows[1].held_out.deviation, 0.05, 1e-12);
  EXPECT_NEAR(rows[1].deviations, 5, 1e-9);

  const Plot plot = LossPlot(results);
  ASSERT_EQ(plot.series.size(), 2U);
  EXPECT_NEAR(plot.series[0].mean[0], 4, 1e-12);
  EXPECT_NEAR(plot.series[0].deviation[1], 0.1, 1e-12);
}

TEST(Comparison, ADivergedRunIsSaidAndStaysOutOfTheMeans) {
  std::vector<RunResult> results = {MakeResult(OptimizerKind::adam, 2, 3200, 9),
                                    MakeResult(OptimizerKind::naive_onebit, NAN, 100, 3),
                                    MakeResult(OptimizerKind::naive_onebit, 3, 100, 3)};
  results[1].summary.diverged = true;
  const std::vector<Row> rows = Compare(results);
  EXPECT_EQ(rows[1].diverged, 1);
  EXPECT_EQ(rows[1].held_out.mean, 3);
  EXPECT_NE(Table(rows, results).find("diverged with 1 of 2 seeds"), std::string::npos);
  results[2].summary.diverged = true;
  EXPECT_TRUE(std::isnan(Compare(results)[1].held_out.mean));
  EXPECT_FALSE(Table(Compare(results), results).empty());
}

TEST(Comparison, JsonHasARowEach) {
  const std::vector<RunResult> results = {MakeResult(OptimizerKind::adam, 2, 3200, 9),
                                          MakeResult(OptimizerKind::zero_one_adam, NAN, 0, 3)};
  const auto json = nlohmann::json::parse(ComparisonJson(Compare(results)));
  ASSERT_EQ(json["comparison"].size(), 2U);
  EXPECT_EQ(json["comparison"][1]["optimizer"], "zero-one-adam");
  EXPECT_EQ(json["comparison"][0]["held_out_loss"], 2);
}

}  // namespace
}  // namespace bitrail::train
