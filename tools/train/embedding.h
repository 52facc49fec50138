// The two ends of the model that are no matrix products: token and position embedding, and the
// cross entropy of the predictions.
#pragma once

#include <cstdint>

#include "tools/train/batch.h"
#include "tools/train/shape.h"

namespace bitrail::train {

// x[b, s] = token[input[b, s]] + position[s]; x (B * S, D).
void EmbeddingForward(const Shape& shape, const Batch& batch, const float* token,
                      const float* position, float* x);
// Adds dx to dtoken (V, D); writes dposition (positions, D), zero for rows that are not used.
void EmbeddingBackward(const Shape& shape, const Batch& batch, const float* dx, float* dtoken,
                       float* dposition);

// Takes the rows to predict out of x (B * S, D); out (predictions, D).
void Gather(const Shape& shape, const Batch& batch, const float* x, float* out);
// The reverse: rows of dout go to their places in dx (B * S, D), everything else is zero.
void Scatter(const Shape& shape, const Batch& batch, const float* dout, float* dx);

// Mean over predictions of -log softmax(logits)[target], nat. logits (predictions, V) becomes its
// own gradient: (softmax - one at target) / predictions.
double CrossEntropy(const Shape& shape, const Batch& batch, float* logits);

}  // namespace bitrail::train
