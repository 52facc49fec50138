// Batches for masked language modelling: of each row 15 % of the positions are to be restored; of
// these 80 % are replaced by the mask token, 10 % by a random token, 10 % left as they are (BERT's
// rule). A batch is a function of (seed, rank, step) alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/train/shape.h"
#include "tools/train/tokenizer.h"

namespace bitrail::train {

struct Batch {
  std::vector<Token> input;       // (B, S) what the model sees
  std::vector<int32_t> position;  // (B * masked) index into B * S, ascending
  std::vector<Token> target;      // (B * masked) the token that was there
};

// Positions to restore in a row of `sequence`: 15 %, at least one.
int64_t MaskedPerRow(int64_t sequence);

// The last 1/20 of the tokens is held out from training.
struct Split {
  size_t train_end = 0;  // training: [0, train_end); held out: [train_end, tokens)
  size_t end = 0;
};
Split MakeSplit(size_t tokens);

// Which numbers a batch draws. Evaluation draws from the held-out part.
enum class Part : uint64_t { train = 0, held_out = 1 };
struct BatchKey {
  uint64_t seed = 0;
  uint64_t rank = 0;
  uint64_t step = 0;
  Part part = Part::train;
};

// Fills *batch with rows cut at random places. Both parts of `tokens` must be longer than S.
void MakeBatch(const std::vector<Token>& tokens, const Shape& shape, const BatchKey& key,
               Batch* batch);

}  // namespace bitrail::train
