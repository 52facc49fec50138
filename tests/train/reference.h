// The model's equations as plain loops in float64, and central differences over them: what the
// float32 layers and their hand-written gradients are compared with.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tools/train/batch.h"
#include "tools/train/parameters.h"
#include "tools/train/shape.h"

namespace bitrail::train::reference {

using Values = std::vector<double>;

Values Widen(const std::vector<float>& x);

// y = x w + bias; x (rows, in), w (in, out).
Values Linear(const Values& x, const double* w, const double* bias, int64_t rows, int64_t in,
              int64_t out);
// scale_shift: scale (width), then shift (width).
Values LayerNorm(const Values& x, const double* scale_shift, int64_t width);
Values Softmax(const Values& x, int64_t width);
Values Gelu(const Values& x);
// qkv (B * S, 3 D) to (B * S, D).
Values Attention(const Shape& shape, const Values& qkv);
// Mean of -log softmax(logits)[target].
double CrossEntropy(const Shape& shape, const Batch& batch, const Values& logits);
// Loss of the whole model.
double Loss(const Shape& shape, const Layout& layout, const Values& parameters, const Batch& batch);

// d f / d x[i] by central differences, for each i in `at`.
Values Difference(const std::function<double(const Values&)>& f, Values x,
                  const std::vector<size_t>& at);

}  // namespace bitrail::train::reference
