// Multi-head self-attention over whole rows (every token sees every token):
//   p = softmax(q k^T / sqrt(d)),  out = p v,  for each row of the batch and each head of width d.
// q, k, v lie side by side: qkv (B * S, 3 D), head h at columns h * d of each third.
#pragma once

#include <vector>

#include "tools/train/primitives.h"
#include "tools/train/shape.h"

namespace bitrail::train {

class Attention {
 public:
  Attention(Device* device, const Shape& shape);
  // p (B, heads, S, S): written, kept for backward. out (B * S, D).
  void Forward(const float* qkv, float* p, float* out);
  // dqkv (B * S, 3 D) is written.
  void Backward(const float* qkv, const float* p, const float* dout, float* dqkv);

 private:
  Shape shape_;
  float scale_;
  Softmax softmax_;        // one batch row at a time, so that it stays in cache
  std::vector<float> dp_;  // (heads, S, S) scratch
};

}  // namespace bitrail::train
