// Text to tokens: one token a letter. Letters are lower-cased and white space is one blank, bytes
// too rare to be learned share one token. A small vocabulary in which every token is frequent keeps
// the variance of every embedding row well away from zero when 1-bit Adam freezes it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace bitrail::train {

using Token = uint8_t;

inline constexpr Token kMaskToken = 0;   // stands for a letter to restore
inline constexpr Token kOtherToken = 1;  // all rare bytes
inline constexpr size_t kMaxVocabulary = 64;

struct Tokenizer {
  std::array<Token, 256> token_of{};
  size_t vocabulary = 0;  // specials included
};

// Vocabulary of `text`: bytes that make up at least 1 in 2,000 of it, most frequent first.
Tokenizer MakeTokenizer(std::string_view text);
// Runs of white space become one blank.
std::vector<Token> Encode(const Tokenizer& tokenizer, std::string_view text);

// Entropy, nat a token, of the tokens' own frequencies: the loss of a model that knows no context.
double UnigramEntropy(const std::vector<Token>& tokens);

}  // namespace bitrail::train
