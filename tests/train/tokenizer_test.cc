#include "tools/train/tokenizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace bitrail::train {
namespace {

TEST(Tokenizer, MostFrequentFirstAndCaseFolded) {
  const Tokenizer tokenizer = MakeTokenizer("Aaab b");
  ASSERT_EQ(tokenizer.vocabulary, 5U);  // mask, other, a, b, blank
  EXPECT_EQ(tokenizer.token_of['a'], 2);
  EXPECT_EQ(tokenizer.token_of['b'], 3);
  EXPECT_EQ(tokenizer.token_of[' '], 4);
  EXPECT_EQ(Encode(tokenizer, "aAbz"), (std::vector<Token>{2, 2, 3, kOtherToken}));
}

TEST(Tokenizer, RunsOfWhiteSpaceAreOneBlank) {
  const Tokenizer tokenizer = MakeTokenizer("ab ab");
  EXPECT_EQ(Encode(tokenizer, "\n a \t\r\n b"), Encode(tokenizer, "a b"));
}

TEST(Tokenizer, RareBytesShareOneToken) {
  std::string text(10000, 'e');
  text += "\xC3";  // once in 10,001
  const Tokenizer tokenizer = MakeTokenizer(text);
  EXPECT_EQ(tokenizer.vocabulary, 3U);
  EXPECT_EQ(tokenizer.token_of[0xC3], kOtherToken);
}

TEST(Tokenizer, VocabularyIsBounded) {
  std::string text;
  for (int i = 0; i < 100; i++)
    for (int byte = 0x80; byte < 0x100; byte++) text.push_back(static_cast<char>(byte));
  const Tokenizer tokenizer = MakeTokenizer(text);
  EXPECT_EQ(tokenizer.vocabulary, kMaxVocabulary);
  for (const Token token : Encode(tokenizer, text)) ASSERT_LT(token, kMaxVocabulary);
}

TEST(Tokenizer, UnigramEntropy) {
  EXPECT_DOUBLE_EQ(UnigramEntropy({2, 3, 2, 3}), std::log(2.0));
  EXPECT_DOUBLE_EQ(UnigramEntropy({2, 2, 2}), 0);
  EXPECT_NEAR(UnigramEntropy({2, 3, 4, 4}), 1.5 * std::log(2.0), 1e-12);
}

}  // namespace
}  // namespace bitrail::train
