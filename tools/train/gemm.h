// Matrix products by oneDNN, row-major float32:
//   C (m, n) = alpha * op(A) (m, k) * op(B) (k, n) + beta * C, op = transposed if asked for.
// Throws dnnl::error when oneDNN refuses; Model turns that into a status.
#pragma once

#include <cstdint>

namespace bitrail::train {

struct Matrix {
  const float* data;
  int64_t stride;  // elements from one stored row to the next
  bool transposed = false;
};

void Gemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c,
          int64_t c_stride);

// Rows of `in` features to rows of `out`: y = x w + bias, w (in, out).
struct LinearSize {
  int64_t rows, in, out;
};
void LinearForward(const LinearSize& size, const float* x, const float* w, const float* bias,
                   float* y);
// dx = dy w^T, dw = x^T dy, dbias = sum over rows of dy; all three are written, not added to.
void LinearBackward(const LinearSize& size, const float* x, const float* w, const float* dy,
                    float* dx, float* dw, float* dbias);
// out (columns) = sum of the rows of x.
void SumRows(const float* x, int64_t rows, int64_t columns, float* out);

}  // namespace bitrail::train
