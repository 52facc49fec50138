#include "runtime/topology/placement.h"

#include <gtest/gtest.h>

namespace bitrail::topology {
namespace {

TEST(Placement, NumbersNodesByTheirFirstRanks) {
  const Placement p = place_ranks({7, 3, 7, 7, 3});
  EXPECT_EQ(p.nodes(), 2);
  EXPECT_EQ(p.node, (std::vector<int>{0, 1, 0, 0, 1}));
  EXPECT_EQ(p.local, (std::vector<int>{0, 0, 1, 2, 1}));
  EXPECT_EQ(p.ranks_of(0), (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(p.ranks_of(1), (std::vector<int>{1, 4}));
  EXPECT_EQ(p.fewest(), 2);
  EXPECT_EQ(p.most(), 3);
  EXPECT_FALSE(p.even());
}

TEST(Placement, LastBlockMayBeShort) {
  const Placement p = place_blocks(5, 2);
  EXPECT_EQ(p.nodes(), 3);
  EXPECT_EQ(p.ranks_of(2), std::vector<int>{4});
  EXPECT_TRUE(place_blocks(6, 2).even());
  EXPECT_EQ(place_blocks(3, 8).nodes(), 1);
}

TEST(Placement, CyclicRanksOfANodeAreApart) {
  const Placement p = place_cyclic(8, 4);
  EXPECT_EQ(p.ranks_of(1), (std::vector<int>{1, 5}));
  EXPECT_EQ(p.local_of(6), 1);
}

TEST(Placement, EmptyWorld) {
  const Placement p = place_ranks({});
  EXPECT_EQ(p.nodes(), 0);
  EXPECT_EQ(p.most(), 0);
  EXPECT_TRUE(p.even());
}

}  // namespace
}  // namespace bitrail::topology
