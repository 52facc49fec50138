// Sizes of the model and of one batch; everything else is derived from them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitrail::train {

struct Shape {
  int64_t layers = 2;
  int64_t width = 128;  // D; a multiple of heads
  int64_t heads = 4;
  int64_t positions = 512;  // rows of the position embedding; at least sequence
  int64_t sequence = 128;   // S, tokens a row; only this many position rows are ever used
  int64_t batch = 8;        // B, rows a rank and step
  int64_t vocabulary = 0;   // V, from the tokenizer
  int64_t masked = 19;      // positions a row that the model has to restore (15 % of S)

  int64_t tokens() const { return batch * sequence; }
  int64_t predictions() const { return batch * masked; }
  int64_t hidden() const { return 4 * width; }
  int64_t head_width() const { return width / heads; }
};

}  // namespace bitrail::train
