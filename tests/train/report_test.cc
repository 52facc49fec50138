#include "tools/train/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace bitrail::train {
namespace {

StepRecord MakeRecord(int64_t step) {
  StepRecord r;
  r.step = step;
  r.loss = static_cast<double>(step);
  r.kind = step > 30 ? StepKind::compressed : StepKind::full;
  r.compute_ms = 1;
  r.comm_ms = step > 30 ? 1 : 9;
  r.step_ms = r.compute_ms + r.comm_ms;
  r.wire_bytes = step > 30 ? 100 : 3200;
  r.lr = 0.5;
  return r;
}

std::vector<StepRecord> MakeRecords(int64_t count) {
  std::vector<StepRecord> records;
  for (int64_t step = 1; step <= count; step++) records.push_back(MakeRecord(step));
  return records;
}

TEST(Report, SummaryFollowsFromTheRecords) {
  std::vector<StepRecord> records = MakeRecords(100);
  records[5].step_ms = 1000;  // an outlier moves the total, not the median
  const Summary s = Summarise(records, 7);
  EXPECT_EQ(s.steps, 100);
  EXPECT_EQ(s.final_steps, kFinalSteps);
  EXPECT_NEAR(s.final_loss, 90.5, 1e-9);  // mean of 81..100
  EXPECT_EQ(s.full.steps, 30);
  EXPECT_EQ(s.compressed.steps, 70);
  EXPECT_EQ(s.full.step_ms, 10);
  EXPECT_EQ(s.compressed.comm_ms, 1);
  EXPECT_EQ(s.full.wire_bytes, 3200);
  EXPECT_EQ(s.compressed.wire_bytes, 100);
  EXPECT_NEAR(s.seconds, (29 * 10 + 1000 + 70 * 2) * 1e-3, 1e-9);
  EXPECT_NEAR(s.tokens_per_second, 700 / s.seconds, 1e-6);
  EXPECT_EQ(s.wire_bytes, 30 * 3200 + 70 * 100);
}

TEST(Report, ALocalStepIsItsOwnPhase) {
  std::vector<StepRecord> records = MakeRecords(40);
  records[39].kind = StepKind::local;
  records[38].skipped = true;
  const Summary s = Summarise(records, 7);
  EXPECT_EQ(s.compressed.steps, 9);
  EXPECT_EQ(s.local.steps, 1);
  EXPECT_EQ(s.skipped_steps, 1);
}

TEST(Report, ShortRunsHaveASummaryToo) {
  const Summary s = Summarise(MakeRecords(2), 7);
  EXPECT_EQ(s.final_steps, 2);
  EXPECT_NEAR(s.final_loss, 1.5, 1e-12);
  EXPECT_EQ(s.compressed.steps, 0);
  EXPECT_EQ(Summarise({}, 7).steps, 0);
}

TEST(Report, JsonHasOneObjectAStepAndTheSummary) {
  std::string folder = (std::filesystem::temp_directory_path() / "bitrail-report-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/steps.json";
  {
    std::unique_ptr<Report> report;
    ASSERT_TRUE(Report::Create(path, &report).ok());
    report->Begin("onebit-adam", 9, 2, 0);
    ASSERT_TRUE(report->Step(MakeRecord(1)).ok());
    ASSERT_TRUE(report->Step(MakeRecord(40)).ok());
    Summary summary = Summarise(MakeRecords(2), 7);
    summary.held_out_loss = std::nan("");
    ASSERT_TRUE(report->Finish(summary).ok());
  }
  std::ifstream file(path);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  std::filesystem::remove_all(folder);

  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["step"], 1);
  EXPECT_EQ(lines[0]["phase"], "full");
  EXPECT_EQ(lines[0]["wire_bytes"], 3200);
  EXPECT_EQ(lines[0]["optimizer"], "onebit-adam");
  EXPECT_EQ(lines[0]["seed"], 9);
  EXPECT_EQ(lines[1]["phase"], "compressed");
  for (const char* key : {"loss", "step_ms", "compute_ms", "comm_ms", "lr"})
    EXPECT_TRUE(lines[1][key].is_number()) << key;
  EXPECT_EQ(lines[2]["summary"]["steps"], 2);
  EXPECT_TRUE(lines[2]["summary"]["held_out_loss"].is_null());
}

TEST(Report, RefusesAFileThatCannotBeWritten) {
  std::unique_ptr<Report> report;
  const Status status = Report::Create("/nonexistent/steps.json", &report);
  EXPECT_EQ(status.code(), BITRAIL_ERR_SYSTEM);
  EXPECT_NE(status.text().find("/nonexistent/steps.json"), std::string::npos) << status.text();
}

}  // namespace
}  // namespace bitrail::train
