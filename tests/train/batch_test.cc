#include "tools/train/batch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace bitrail::train {
namespace {

// token[i] tells i modulo a prime, so that a row's place in the text can be read off.
constexpr int64_t kVocabulary = 64;
Token TokenAt(size_t i) { return static_cast<Token>(2 + i % 61); }

std::vector<Token> Text(size_t count) {
  std::vector<Token> tokens(count);
  for (size_t i = 0; i < count; i++) tokens[i] = TokenAt(i);
  return tokens;
}

Shape TestShape() {
  Shape shape;
  shape.batch = 50;
  shape.vocabulary = kVocabulary;
  shape.masked = MaskedPerRow(shape.sequence);
  return shape;
}

Batch Make(const BatchKey& key) {
  Batch batch;
  MakeBatch(Text(100000), TestShape(), key, &batch);
  return batch;
}

TEST(Batch, FifteenPercent) {
  EXPECT_EQ(MaskedPerRow(128), 19);
  EXPECT_EQ(MaskedPerRow(100), 15);
  EXPECT_EQ(MaskedPerRow(2), 1);
}

TEST(Batch, TargetsAreTheTokensThatWereThere) {
  const Shape shape = TestShape();
  const Batch batch = Make({1, 0, 1, Part::train});
  ASSERT_EQ(batch.input.size(), static_cast<size_t>(shape.tokens()));
  ASSERT_EQ(batch.position.size(), static_cast<size_t>(shape.predictions()));
  ASSERT_EQ(batch.target.size(), batch.position.size());
  std::vector<Token> restored = batch.input;
  for (size_t i = 0; i < batch.position.size(); i++) {
    if (i > 0) {
      ASSERT_LT(batch.position[i - 1], batch.position[i]);
    }
    ASSERT_EQ(batch.position[i] / shape.sequence, static_cast<int64_t>(i) / shape.masked);
    restored[static_cast<size_t>(batch.position[i])] = batch.target[i];
  }
  for (size_t t = 1; t < restored.size(); t++) {
    if (t % static_cast<size_t>(shape.sequence) == 0) continue;
    ASSERT_EQ(restored[t], TokenAt(restored[t - 1] - 2U + 1U)) << t;
  }
}

TEST(Batch, EightyTenTen) {
  size_t masked = 0;
  size_t kept = 0;
  size_t all = 0;
  for (uint64_t step = 0; step < 20; step++) {
    const Batch batch = Make({1, 0, step, Part::train});
    for (size_t i = 0; i < batch.position.size(); i++) {
      const Token token = batch.input[static_cast<size_t>(batch.position[i])];
      masked += token == kMaskToken ? 1 : 0;
      kept += token == batch.target[i] ? 1 : 0;
      all++;
    }
  }
  ASSERT_EQ(all, 20U * 50 * 19);
  EXPECT_NEAR(static_cast<double>(masked) / static_cast<double>(all), 0.8, 0.01);
  // One in 63 random tokens is the right one by chance.
  EXPECT_NEAR(static_cast<double>(kept) / static_cast<double>(all), 0.1 + 0.1 / 63, 0.01);
}

TEST(Batch, AFunctionOfSeedRankAndStep) {
  const BatchKey key = {1, 2, 3, Part::train};
  const Batch batch = Make(key);
  EXPECT_EQ(batch.input, Make(key).input);
  EXPECT_EQ(batch.position, Make(key).position);
  for (const BatchKey& other : {BatchKey{2, 2, 3, Part::train}, BatchKey{1, 1, 3, Part::train},
                                BatchKey{1, 2, 4, Part::train}, BatchKey{1, 2, 3, Part::held_out}})
    EXPECT_NE(batch.input, Make(other).input);
}

// Training never sees the held-out tokens and the other way round.
TEST(Batch, PartsDoNotOverlap) {
  std::vector<Token> tokens(10000, 5);
  const Split split = MakeSplit(tokens.size());
  EXPECT_EQ(split.train_end, 9500U);
  std::fill(tokens.begin() + static_cast<int64_t>(split.train_end), tokens.end(), Token{9});
  for (const Part part : {Part::train, Part::held_out}) {
    Batch batch;
    MakeBatch(tokens, TestShape(), {1, 0, 1, part}, &batch);
    const Token expected = part == Part::train ? 5 : 9;
    for (const Token token : batch.target) ASSERT_EQ(token, expected);
  }
}

}  // namespace
}  // namespace bitrail::train
