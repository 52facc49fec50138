// `bitrail schedule` without the process around it.
#include <gtest/gtest.h>

#include "runtime/schedule/collective.h"
#include "tools/bitrail/schedule.h"

namespace bitrail::tool {
namespace {

TEST(ShowSchedule, DrawsEveryCollectiveInEveryFormat) {
  for (int i = 0; i < schedule::kCollectives; i++)
    for (const char* format : {"text", "chrome", "svg"}) {
      ScheduleOptions options;
      options.collective = collective_name(static_cast<schedule::Collective>(i));
      options.format = format;
      options.pieces = 2;
      std::string text;
      const Status status = show_schedule(options, &text);
      EXPECT_TRUE(status.ok()) << status.text();
      EXPECT_NE(text.find(options.collective), std::string::npos);
    }
}

TEST(ShowSchedule, ShowsOneRank) {
  ScheduleOptions options;
  options.rank = 2;
  options.algo = "ring";
  std::string text;
  ASSERT_TRUE(show_schedule(options, &text).ok());
  EXPECT_NE(text.find("rank 2 of 4"), std::string::npos);
  EXPECT_EQ(text.find("rank 1 of 4"), std::string::npos);
}

TEST(ShowSchedule, PlacesRanksOnNodes) {
  ScheduleOptions options;
  options.algo = "hier";
  options.rank = 0;
  options.pieces = 1;
  std::string text;
  EXPECT_NE(show_schedule(options, &text).text().find("hier does not apply here"),
            std::string::npos);
  options.ranks_per_node = 2;
  ASSERT_TRUE(show_schedule(options, &text).ok());
  EXPECT_NE(text.find("hier allreduce w4"), std::string::npos);
  // Inside the node to the neighbour, between nodes to the same place.
  EXPECT_NE(text.find("to 1, message"), std::string::npos) << text;
  EXPECT_NE(text.find("to 2, message"), std::string::npos) << text;
  EXPECT_EQ(text.find("to 3, message"), std::string::npos) << text;
  options.cyclic = true;
  ASSERT_TRUE(show_schedule(options, &text).ok());
  EXPECT_NE(text.find("to 2, message"), std::string::npos) << text;
  EXPECT_NE(text.find("to 1, message"), std::string::npos) << text;
  EXPECT_EQ(text.find("to 3, message"), std::string::npos) << text;
  options.ranks_per_node = 0;
  EXPECT_EQ(show_schedule(options, &text).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  options.cyclic = false;
  options.ranks_per_node = -1;
  EXPECT_EQ(show_schedule(options, &text).code(), BITRAIL_ERR_INVALID_ARGUMENT);
}

TEST(ShowSchedule, Simulates) {
  ScheduleOptions options;
  options.algo = "ring";
  options.pieces = 1;
  options.mbps = 8;  // 1 us a byte
  options.us = 0;
  std::string text;
  ASSERT_TRUE(show_schedule(options, &text).ok());
  EXPECT_NE(text.find("rank 0 sends 6291456 bytes"), std::string::npos) << text;
}

TEST(ShowSchedule, SaysWhatIsWrong) {
  std::string text;
  ScheduleOptions options;
  options.collective = "alreduce";
  EXPECT_NE(show_schedule(options, &text).text().find("nearest first: allreduce"),
            std::string::npos);
  options.collective = "allreduce";
  options.algo = "rign";
  EXPECT_NE(show_schedule(options, &text).text().find("nearest first: ring"), std::string::npos);
  options.algo = "";
  options.rank = 4;
  EXPECT_EQ(show_schedule(options, &text).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  options.rank = 0;
  options.format = "png";
  EXPECT_EQ(show_schedule(options, &text).code(), BITRAIL_ERR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace bitrail::tool
