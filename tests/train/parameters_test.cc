#include "tools/train/parameters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace bitrail::train {
namespace {

Shape TestShape() {
  Shape shape;
  shape.vocabulary = 40;
  return shape;
}

TEST(Parameters, SegmentsCoverTheArrayWithoutGaps) {
  const Layout layout = MakeLayout(TestShape());
  size_t next = 0;
  std::set<std::string> names;
  for (const Segment& segment : layout.segments) {
    EXPECT_EQ(segment.offset, next) << segment.name;
    EXPECT_GT(segment.count, 0U) << segment.name;
    EXPECT_TRUE(names.insert(segment.name).second) << segment.name;
    next += segment.count;
  }
  EXPECT_EQ(next, layout.count);
  // 2 embeddings, 12 tensors a layer, last norm's two and the bias.
  EXPECT_EQ(layout.segments.size(), 2U + 2 * 12 + 3);
  EXPECT_EQ(layout.count, 40U * 128 + 512 * 128 + 2 * (12 * 128 * 128 + 13 * 128) + 256 + 40);
}

TEST(Parameters, OnlyMatricesDecay) {
  for (const Segment& segment : MakeLayout(TestShape()).segments) {
    const bool matrix = segment.count > 512;
    EXPECT_EQ(segment.group == Group::decay, matrix) << segment.name;
  }
}

// The start values' promise: with queries and keys of positions alone, head h scores its neighbour
// higher than every other position.
TEST(Parameters, HeadsStartOutLookingAtTheirNeighbours) {
  const Shape shape = TestShape();
  const Layout layout = MakeLayout(shape);
  const std::vector<float> w = InitialParameters(shape, layout, 1);
  const int64_t d = shape.width;
  const auto project = [&](int64_t p, int64_t third, int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < d; i++)
      sum += double{w[layout.position + static_cast<size_t>(p * d + i)]} *
             w[layout.layers[0].qkv + static_cast<size_t>(i * 3 * d + third * d + j)];
    return sum;
  };
  const int64_t neighbour[] = {-1, 1, -2, 2};
  constexpr int64_t kPosition = 50;
  for (int64_t h = 0; h < shape.heads; h++) {
    int64_t best = -1;
    double best_score = -1e9;
    for (int64_t p = 0; p < shape.sequence; p++) {
      double score = 0;
      for (int64_t j = h * shape.head_width(); j < (h + 1) * shape.head_width(); j++)
        score += project(kPosition, 0, j) * project(p, 1, j);
      if (score > best_score) {
        best_score = score;
        best = p;
      }
    }
    EXPECT_EQ(best, kPosition + neighbour[h]) << "head " << h;
  }
}

TEST(Parameters, MomentumMask) {
  const Shape shape = TestShape();
  const Layout layout = MakeLayout(shape);
  size_t masked_segments = 0;
  for (const Segment& segment : layout.segments) {
    const std::vector<float> mask = MomentumMask(shape, layout, segment);
    if (mask.empty()) continue;
    masked_segments++;
    ASSERT_EQ(mask.size(), segment.count) << segment.name;
    for (size_t i = 0; i < mask.size(); i++) {
      const bool dead = segment.offset == layout.position ? i >= 128U * 128 : i / 128 == 1;
      ASSERT_EQ(mask[i], dead ? 0.0F : 1.0F) << segment.name << " " << i;
    }
  }
  EXPECT_EQ(masked_segments, 1U + 2);  // positions, and the keys' biases of two layers
}

TEST(Parameters, NoPositionMaskWhenAllRowsAreUsed) {
  Shape shape = TestShape();
  shape.sequence = shape.positions;
  const Layout layout = MakeLayout(shape);
  EXPECT_TRUE(MomentumMask(shape, layout, layout.segments[1]).empty());
}

}  // namespace
}  // namespace bitrail::train
