#include "tools/train/embedding.h"

#include <algorithm>
#include <cmath>

namespace bitrail::train {

void EmbeddingForward(const Shape& shape, const Batch& batch, const float* token,
                      const float* position, float* x) {
  const int64_t d = shape.width;
  for (int64_t t = 0; t < shape.tokens(); t++) {
    const float* from_token = token + batch.input[static_cast<size_t>(t)] * d;
    const float* from_position = position + t % shape.sequence * d;
    for (int64_t i = 0; i < d; i++) x[t * d + i] = from_token[i] + from_position[i];
  }
}

void EmbeddingBackward(const Shape& shape, const Batch& batch, const float* dx, float* dtoken,
                       float* dposition) {
  const int64_t d = shape.width;
  std::fill_n(dposition, shape.positions * d, 0.0F);
  for (int64_t t = 0; t < shape.tokens(); t++) {
    float* to_token = dtoken + batch.input[static_cast<size_t>(t)] * d;
    float* to_position = dposition + t % shape.sequence * d;
    for (int64_t i = 0; i < d; i++) {
      to_token[i] += dx[t * d + i];
      to_position[i] += dx[t * d + i];
    }
  }
}

void Gather(const Shape& shape, const Batch& batch, const float* x, float* out) {
  for (size_t i = 0; i < batch.position.size(); i++)
    std::copy_n(x + batch.position[i] * shape.width, shape.width,
                out + static_cast<int64_t>(i) * shape.width);
}

void Scatter(const Shape& shape, const Batch& batch, const float* dout, float* dx) {
  std::fill_n(dx, shape.tokens() * shape.width, 0.0F);
  for (size_t i = 0; i < batch.position.size(); i++)
    std::copy_n(dout + static_cast<int64_t>(i) * shape.width, shape.width,
                dx + batch.position[i] * shape.width);
}

double CrossEntropy(const Shape& shape, const Batch& batch, float* logits) {
  const int64_t v = shape.vocabulary;
  const auto rows = static_cast<double>(batch.target.size());
  double loss = 0;
  for (size_t i = 0; i < batch.target.size(); i++) {
    float* row = logits + static_cast<int64_t>(i) * v;
    const float top = *std::max_element(row, row + v);
    const float target = row[batch.target[i]] - top;
    double sum = 0;
    for (int64_t k = 0; k < v; k++) {
      row[k] = std::exp(row[k] - top);
      sum += static_cast<double>(row[k]);
    }
    loss += std::log(sum) - static_cast<double>(target);
    const auto factor = static_cast<float>(1 / (sum * rows));
    for (int64_t k = 0; k < v; k++) row[k] *= factor;
    row[batch.target[i]] -= static_cast<float>(1 / rows);
  }
  return loss / rows;
}

}  // namespace bitrail::train
