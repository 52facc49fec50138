#include "tools/train/attention.h"

#include <cmath>

#include "tools/train/gemm.h"

namespace bitrail::train {

Attention::Attention(Device* device, const Shape& shape)
    : shape_(shape),
      scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.head_width())))),
      softmax_(device, shape.heads * shape.sequence, shape.sequence),
      dp_(static_cast<size_t>(shape.heads * shape.sequence * shape.sequence)) {}

void Attention::Forward(const float* qkv, float* p, float* out) {
  const int64_t s = shape_.sequence;
  const int64_t d = shape_.head_width();
  const int64_t width = shape_.width;
  const int64_t stride = 3 * width;
  for (int64_t b = 0; b < shape_.batch; b++) {
    const float* row = qkv + b * s * stride;
    float* row_p = p + b * shape_.heads * s * s;
    for (int64_t h = 0; h < shape_.heads; h++) {
      const float* q = row + h * d;
      Gemm(s, s, d, scale_, {q, stride}, {q + width, stride, true}, 0, row_p + h * s * s, s);
    }
    softmax_.Forward(row_p);
    for (int64_t h = 0; h < shape_.heads; h++) {
      const float* v = row + 2 * width + h * d;
      Gemm(s, d, s, 1, {row_p + h * s * s, s}, {v, stride}, 0, out + b * s * width + h * d, width);
    }
  }
}

void Attention::Backward(const float* qkv, const float* p, const float* dout, float* dqkv) {
  const int64_t s = shape_.sequence;
  const int64_t d = shape_.head_width();
  const int64_t width = shape_.width;
  const int64_t stride = 3 * width;
  for (int64_t b = 0; b < shape_.batch; b++) {
    const float* row = qkv + b * s * stride;
    const float* row_p = p + b * shape_.heads * s * s;
    const float* row_dout = dout + b * s * width;
    float* row_dqkv = dqkv + b * s * stride;
    for (int64_t h = 0; h < shape_.heads; h++) {
      const float* v = row + 2 * width + h * d;
      const float* dout_h = row_dout + h * d;
      Gemm(s, s, d, 1, {dout_h, width}, {v, stride, true}, 0, dp_.data() + h * s * s, s);
      Gemm(s, d, s, 1, {row_p + h * s * s, s, true}, {dout_h, width}, 0,
           row_dqkv + 2 * width + h * d, stride);
    }
    softmax_.Backward(row_p, dp_.data());
    for (int64_t h = 0; h < shape_.heads; h++) {
      const float* q = row + h * d;
      const float* ds = dp_.data() + h * s * s;
      float* dq = row_dqkv + h * d;
      Gemm(s, d, s, scale_, {ds, s}, {q + width, stride}, 0, dq, stride);
      Gemm(s, d, s, scale_, {ds, s, true}, {q, stride}, 0, dq + width, stride);
    }
  }
}

}  // namespace bitrail::train
