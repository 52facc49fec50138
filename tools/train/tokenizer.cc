#include "tools/train/tokenizer.h"

#include <algorithm>
#include <cmath>

namespace bitrail::train {
namespace {

constexpr size_t kRareOneIn = 2000;

unsigned char Normal(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 'A' && byte <= 'Z') return static_cast<unsigned char>(byte - 'A' + 'a');
  if (byte == '\n' || byte == '\t' || byte == '\r' || byte == '\f') return ' ';
  return byte;
}

}  // namespace

Tokenizer MakeTokenizer(std::string_view text) {
  std::array<size_t, 256> count{};
  for (const char c : text) count[Normal(c)]++;
  std::vector<int> order;
  for (int byte = 0; byte < 256; byte++)
    if (count[byte] > 0 && count[byte] * kRareOneIn >= text.size()) order.push_back(byte);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return count[a] > count[b]; });
  order.resize(std::min(order.size(), kMaxVocabulary - 2));

  Tokenizer tokenizer;
  tokenizer.token_of.fill(kOtherToken);
  size_t next = kOtherToken + 1;
  for (const int byte : order) tokenizer.token_of[byte] = static_cast<Token>(next++);
  tokenizer.vocabulary = next;
  return tokenizer;
}

std::vector<Token> Encode(const Tokenizer& tokenizer, std::string_view text) {
  std::vector<Token> tokens;
  tokens.reserve(text.size());
  bool blank = true;
  for (const char c : text) {
    const unsigned char byte = Normal(c);
    if (byte == ' ' && blank) continue;
    blank = byte == ' ';
    tokens.push_back(tokenizer.token_of[byte]);
  }
  return tokens;
}

double UnigramEntropy(const std::vector<Token>& tokens) {
  std::array<size_t, 256> count{};
  for (const Token token : tokens) count[token]++;
  double entropy = 0;
  for (const size_t c : count) {
    if (c == 0) continue;
    const double p = static_cast<double>(c) / static_cast<double>(tokens.size());
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace bitrail::train
