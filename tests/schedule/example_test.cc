// The worked example of docs/algorithms.md (star_example.cc is cut out of it by the build).
#include <gtest/gtest.h>

#include "runtime/planner/choose.h"
#include "runtime/schedule/simulate.h"
#include "runtime/schedule/verify.h"
#include "tests/schedule/worlds.h"

namespace bitrail::algorithms {
Status register_star();
}

namespace bitrail {
namespace {

using schedule::Collective;

TEST(Example, IsRegisteredChosenAndRight) {
  ASSERT_TRUE(algorithms::register_star().ok());
  for (int world = 1; world <= 5; world++)
    for (bool in_place : {false, true}) {
      algorithms::Request request = test::make_request(Collective::allreduce, world, 3);
      request.in_place = in_place;
      planner::Choice choice;
      ASSERT_TRUE(planner::choose(request, "allreduce:star", 0, &choice).ok());
      ASSERT_EQ(choice.algorithm->name, "star");
      const std::vector<schedule::Schedule> ranks =
          test::build_world(*choice.algorithm, choice.request);
      for (uint64_t count : {0U, 1U, 7U, 30U}) {
        const schedule::Binding binding = test::bind(Collective::allreduce, world, count);
        EXPECT_EQ(test::first(verify(ranks, binding, {Collective::allreduce, 0})), "none");
        EXPECT_TRUE(simulate(ranks, binding, {}).complete);
      }
    }
}

}  // namespace
}  // namespace bitrail
