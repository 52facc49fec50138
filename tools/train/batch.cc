#include "tools/train/batch.h"

#include <algorithm>
#include <cmath>

#include "tools/train/random.h"

namespace bitrail::train {
namespace {

constexpr double kMaskedShare = 0.15;
constexpr double kToMask = 0.8;
constexpr double kToRandom = 0.1;

// `count` different numbers below n, ascending (Floyd's method would need a set; n is small).
void Choose(Random* random, int64_t n, int64_t count, std::vector<int32_t>* out) {
  for (int64_t i = 0; i < n && count > 0; i++) {
    if (static_cast<int64_t>(random->Below(static_cast<uint64_t>(n - i))) >= count) continue;
    out->push_back(static_cast<int32_t>(i));
    count--;
  }
}

Token Corrupt(Random* random, Token token, int64_t vocabulary) {
  const double u = random->Uniform();
  if (u < kToMask) return kMaskToken;
  if (u >= kToMask + kToRandom) return token;
  return static_cast<Token>(1 + random->Below(static_cast<uint64_t>(vocabulary - 1)));
}

}  // namespace

int64_t MaskedPerRow(int64_t sequence) {
  return std::max<int64_t>(1, std::llround(kMaskedShare * static_cast<double>(sequence)));
}

Split MakeSplit(size_t tokens) { return {tokens - tokens / 20, tokens}; }

void MakeBatch(const std::vector<Token>& tokens, const Shape& shape, const BatchKey& key,
               Batch* batch) {
  const Split split = MakeSplit(tokens.size());
  const size_t begin = key.part == Part::train ? 0 : split.train_end;
  const size_t end = key.part == Part::train ? split.train_end : split.end;
  const uint64_t starts = end - begin - static_cast<uint64_t>(shape.sequence) + 1;
  Random random(key.seed, (key.rank << 1) | static_cast<uint64_t>(key.part), key.step);

  batch->input.clear();
  batch->position.clear();
  batch->target.clear();
  for (int64_t row = 0; row < shape.batch; row++) {
    const auto from = tokens.begin() + static_cast<int64_t>(begin + random.Below(starts));
    batch->input.insert(batch->input.end(), from, from + shape.sequence);
    const size_t first = batch->position.size();
    Choose(&random, shape.sequence, shape.masked, &batch->position);
    for (size_t i = first; i < batch->position.size(); i++) {
      batch->position[i] += static_cast<int32_t>(row * shape.sequence);
      Token& token = batch->input[static_cast<size_t>(batch->position[i])];
      batch->target.push_back(token);
      token = Corrupt(&random, token, shape.vocabulary);
    }
  }
}

}  // namespace bitrail::train
