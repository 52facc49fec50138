#include "runtime/schedule/draw.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "runtime/schedule/tracks.h"
#include "tests/schedule/worlds.h"

namespace bitrail::schedule {
namespace {

std::vector<Schedule> onebit_world(int world) {
  return test::build_world(*planner::find(Collective::onebit_allreduce, "onebit_direct"),
                           test::make_request(Collective::onebit_allreduce, world, 2));
}

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) n++;
  return n;
}

TEST(DrawText, HasALineForEachBufferAndOperation) {
  const Schedule rank = onebit_world(3)[1];
  const std::string text = draw_text(rank);
  EXPECT_EQ(count(text, "\n"), 1 + rank.buffers.size() + rank.operations.size());
  EXPECT_NE(text.find("rank 1 of 3"), std::string::npos);
  EXPECT_NE(text.find("wire_in[2] chunk 1/3 piece 0/2"), std::string::npos) << text;
  EXPECT_NE(text.find("send           to 2, message 0 reads scales[1]"), std::string::npos) << text;
}

TEST(DrawChrome, HasAnEventForEachOperationAndBothEndsOfEachMessage) {
  const std::vector<Schedule> ranks = onebit_world(3);
  const auto trace = nlohmann::json::parse(draw_chrome(ranks, unit_timeline(ranks)));
  size_t operations = 0;
  for (const Schedule& rank : ranks) operations += rank.operations.size();
  std::map<std::string, size_t> phases;
  std::map<int, int> arrows;
  for (const auto& event : trace["traceEvents"]) {
    phases[event["ph"]]++;
    if (event["ph"] == "X") {
      EXPECT_EQ(event["dur"], 1.0);
    }
    if (event["ph"] == "s") arrows[event["id"]]++;
    if (event["ph"] == "f") arrows[event["id"]]--;
  }
  EXPECT_EQ(phases["X"], operations);
  EXPECT_GT(phases["s"], 0U);
  EXPECT_EQ(phases["s"], phases["f"]);
  for (const auto& [id, balance] : arrows) EXPECT_EQ(balance, 0) << id;
}

TEST(DrawSvg, HasABoxForEachOperation) {
  const std::vector<Schedule> ranks = onebit_world(2);
  const std::string svg = draw_svg(ranks, unit_timeline(ranks));
  EXPECT_EQ(count(svg, "<rect "), ranks[0].operations.size() + ranks[1].operations.size());
  EXPECT_EQ(count(svg, "<title>"), count(svg, "</title>"));
  EXPECT_EQ(svg.rfind("<svg", 0), 0U);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
}

TEST(DrawSvg, EscapesNames) {
  Builder builder("a<b & \"c\"", 0, 1);
  std::vector<Schedule> ranks;
  ranks.push_back(builder.finish());
  const std::string svg = draw_svg(ranks, unit_timeline(ranks));
  EXPECT_NE(svg.find("a&lt;b &amp; &quot;c&quot;"), std::string::npos);
}

TEST(UnitTimeline, ReceivesEndAfterTheirSends) {
  const std::vector<Schedule> ranks =
      test::build_world(*planner::find(Collective::allreduce, "ring"),
                        test::make_request(Collective::allreduce, 4, 1));
  const Timeline timeline = unit_timeline(ranks);
  // 3 steps of send, recv, reduce, then 3 of send, recv.
  EXPECT_EQ(timeline.end, 3 * 3 + 3 * 2);
  for (size_t r = 0; r < ranks.size(); r++)
    for (OperationId id = 0; id < ranks[r].operations.size(); id++)
      for (OperationId before : ranks[r].operations[id].after)
        EXPECT_GE(timeline.ranks[r][id].begin, timeline.ranks[r][before].end);
}

TEST(UnitTimeline, OneRankAloneWaitsForNobody) {
  const std::vector<Schedule> ranks = {onebit_world(4)[2]};
  EXPECT_GT(unit_timeline(ranks).end, 0);
}

TEST(Tracks, OperationsOfOneTrackDoNotOverlap) {
  const std::vector<Schedule> ranks = onebit_world(4);
  const Timeline timeline = unit_timeline(ranks);
  const Tracks tracks = assign_tracks(ranks[0], timeline.ranks[0]);
  for (OperationId a = 0; a < tracks.of.size(); a++)
    for (OperationId b = 0; b < a; b++)
      if (tracks.of[a] == tracks.of[b]) {
        const Span& x = timeline.ranks[0][a];
        const Span& y = timeline.ranks[0][b];
        EXPECT_TRUE(x.end <= y.begin || y.end <= x.begin);
      }
}

}  // namespace
}  // namespace bitrail::schedule
