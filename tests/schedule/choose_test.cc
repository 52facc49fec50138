#include "runtime/planner/choose.h"

#include <gtest/gtest.h>

namespace bitrail::planner {
namespace {

Request allreduce_of(uint64_t bytes) {
  Request request;
  request.world_size = 4;
  request.bytes = bytes;
  request.count = bytes / 4;
  return request;
}

std::string chosen(const Request& request, const std::string& algo = "") {
  Choice choice;
  const Status status = choose(request, algo, 0, &choice);
  return status.ok() ? choice.algorithm->name : status.text();
}

TEST(Choose, GoesBySize) {
  EXPECT_EQ(chosen(allreduce_of(0)), "one_shot");
  EXPECT_EQ(chosen(allreduce_of(kOneShotBytes)), "one_shot");
  EXPECT_EQ(chosen(allreduce_of(kOneShotBytes + 4)), "doubling");
  Request few = allreduce_of(8), many = allreduce_of(8);
  few.world_size = 2;
  many.world_size = kOneShotRanks + 1;
  EXPECT_EQ(chosen(few), "doubling");
  EXPECT_EQ(chosen(many), "doubling");
  EXPECT_EQ(chosen(allreduce_of(kDoublingBytes)), "doubling");
  EXPECT_EQ(chosen(allreduce_of(kDoublingBytes + 4)), "direct");
  EXPECT_EQ(chosen(allreduce_of(1 << 30)), "direct");
}

TEST(Choose, DeterministicMeansRankOrder) {
  Request request = allreduce_of(8);
  request.deterministic = true;
  EXPECT_EQ(chosen(request), "one_shot");
  EXPECT_EQ(chosen(request, "allreduce:ring"), "one_shot");
  request.bytes = kOneShotBytes + 4;
  EXPECT_EQ(chosen(request), "direct");
  Choice choice;
  ASSERT_TRUE(choose(request, "allreduce:ring", 0, &choice).ok());
  EXPECT_NE(choice.reason.find("ring does not apply"), std::string::npos) << choice.reason;
}

TEST(Choose, ObeysTheVariable) {
  EXPECT_EQ(chosen(allreduce_of(8), "allreduce:ring"), "ring");
  EXPECT_EQ(chosen(allreduce_of(8), "broadcast:tree , allreduce:direct"), "direct");
  EXPECT_EQ(chosen(allreduce_of(8), "broadcast:tree"), "one_shot");
  EXPECT_EQ(chosen(allreduce_of(8), ","), "one_shot");
}

TEST(Choose, RefusesUnknownNamesAndSaysWhatThereIs) {
  Choice choice;
  const Status algorithm = choose(allreduce_of(8), "allreduce:rign", 0, &choice);
  EXPECT_EQ(algorithm.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(algorithm.text().find("nearest first: ring"), std::string::npos) << algorithm.text();
  const Status collective = choose(allreduce_of(8), "alreduce:ring", 0, &choice);
  EXPECT_EQ(collective.code(), BITRAIL_ERR_CONFIG);
  EXPECT_NE(collective.text().find("nearest first: allreduce"), std::string::npos);
  EXPECT_EQ(check_algo("ring").code(), BITRAIL_ERR_CONFIG);
  // An entry for another collective is read too.
  EXPECT_EQ(choose(allreduce_of(8), "broadcast:star", 0, &choice).code(), BITRAIL_ERR_CONFIG);
}

TEST(Choose, CutsPiecesByTheChunksSize) {
  Choice choice;
  ASSERT_TRUE(choose(allreduce_of(64 << 20), "", 0, &choice).ok());
  EXPECT_EQ(choice.request.pieces, 32U);  // 16 MiB chunks
  ASSERT_TRUE(choose(allreduce_of(4), "", 0, &choice).ok());
  EXPECT_EQ(choice.request.pieces, 1U);
  ASSERT_TRUE(choose(allreduce_of(64 << 20), "", 1 << 20, &choice).ok());
  EXPECT_EQ(choice.request.pieces, 4U);
  ASSERT_TRUE(choose(allreduce_of(1ULL << 40), "", 1, &choice).ok());
  EXPECT_EQ(choice.request.pieces, kMaxPieces);
  Request onebit = allreduce_of(64 << 20);
  onebit.collective = Collective::onebit_allreduce;
  ASSERT_TRUE(choose(onebit, "", 0, &choice).ok());
  EXPECT_EQ(choice.request.pieces, 16U);  // 4 Mi elements a chunk
}

TEST(Choose, SaysWhatCannotBeDone) {
  Request request = allreduce_of(64);
  request.collective = Collective::alltoall;
  request.in_place = true;
  Choice choice;
  EXPECT_EQ(choose(request, "", 0, &choice).code(), BITRAIL_ERR_UNSUPPORTED);
}

bool always(const Request&) { return true; }

TEST(Registry, TakesFurtherAlgorithmsOnce) {
  const Algorithm mine = {"choose_test", Collective::broadcast, always, algorithms::tree_broadcast};
  ASSERT_TRUE(register_algorithm(mine).ok());
  EXPECT_EQ(register_algorithm(mine).code(), BITRAIL_ERR_INVALID_ARGUMENT);
  Request request = allreduce_of(64);
  request.collective = Collective::broadcast;
  EXPECT_EQ(chosen(request), "tree");
  EXPECT_EQ(chosen(request, "broadcast:choose_test"), "choose_test");
}

TEST(Registry, RefusesWhatCannotBeNamedOrBuilt) {
  EXPECT_FALSE(
      register_algorithm({"", Collective::broadcast, always, algorithms::tree_broadcast}).ok());
  EXPECT_FALSE(
      register_algorithm({"a:b", Collective::broadcast, always, algorithms::tree_broadcast}).ok());
  EXPECT_FALSE(register_algorithm({"a", Collective::broadcast, nullptr, nullptr}).ok());
}

}  // namespace
}  // namespace bitrail::planner
