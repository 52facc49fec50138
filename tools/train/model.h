// BERT-style encoder for masked language modelling, normalisation before each branch:
//   x = token + position
//   per layer:  x += proj(attention(qkv(norm1(x))));  x += down(gelu(up(norm2(x))))
//   logits = norm(x at the masked positions) token^T + bias
// Backward is written by hand, layer by layer in the reverse order.
#pragma once

#include <memory>
#include <vector>

#include "runtime/common/status.h"
#include "tools/train/attention.h"
#include "tools/train/batch.h"
#include "tools/train/parameters.h"
#include "tools/train/primitives.h"
#include "tools/train/shape.h"

namespace bitrail::train {

// What forward keeps of one layer for backward.
struct LayerState {
  std::vector<float> input;                    // (T, D), T = B * S
  std::vector<float> norm1, mean1, variance1;  // (T, D), (T), (T)
  std::vector<float> qkv, p, mixed;            // (T, 3D), (B, heads, S, S), (T, D)
  std::vector<float> middle;                   // (T, D) after the attention branch
  std::vector<float> norm2, mean2, variance2;
  std::vector<float> up, gelu;  // (T, 4D) before and after GELU
};

class Model {
 public:
  // Allocates everything; afterwards no call allocates more than oneDNN itself does.
  static Status Create(const Shape& shape, std::unique_ptr<Model>* model);

  const Shape& shape() const { return shape_; }
  const Layout& layout() const { return layout_; }

  // Loss of the batch, nat a prediction. parameters: layout().count floats.
  Status Loss(const float* parameters, const Batch& batch, double* loss);
  // The same, and its gradient (layout().count floats, all written).
  Status LossAndGradient(const float* parameters, const Batch& batch, double* loss,
                         float* gradient);

 private:
  explicit Model(const Shape& shape);
  double Forward(const float* w, const Batch& batch);
  void Backward(const float* w, const Batch& batch, float* g);
  void LayerForward(const float* w, const LayerOffsets& o, LayerState* s, float* out);
  void LayerBackward(const float* w, const LayerOffsets& o, LayerState* s, float* g);
  void HeadForward(const float* w, const Batch& batch);
  void HeadBackward(const float* w, const Batch& batch, float* g);

  Shape shape_;
  Layout layout_;
  Device device_;
  LayerNorm norm_;       // (T, D)
  LayerNorm head_norm_;  // (predictions, D)
  Gelu gelu_;
  Attention attention_;
  std::vector<LayerState> layers_;
  std::vector<float> output_;  // (T, D) of the last layer
  std::vector<float> picked_, head_, head_mean_, head_variance_;
  std::vector<float> logits_;             // (predictions, V); after forward: their gradient
  std::vector<float> dx_;                 // (T, D) gradient on its way down
  std::vector<float> dbranch_, dhidden_;  // (T, D), (T, 4D) scratch
  std::vector<float> dhead_;              // (predictions, D)
};

}  // namespace bitrail::train
