#include "tools/train/gemm.h"

#include <algorithm>
#include <dnnl.hpp>

namespace bitrail::train {

void Gemm(int64_t m, int64_t n, int64_t k, float alpha, Matrix a, Matrix b, float beta, float* c,
          int64_t c_stride) {
  dnnl::error::wrap_c_api(dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k,
                                     alpha, a.data, a.stride, b.data, b.stride, beta, c, c_stride),
                          "matrix product refused by oneDNN");
}

void LinearForward(const LinearSize& size, const float* x, const float* w, const float* bias,
                   float* y) {
  for (int64_t row = 0; row < size.rows; row++) std::copy_n(bias, size.out, y + row * size.out);
  Gemm(size.rows, size.out, size.in, 1, {x, size.in}, {w, size.out}, 1, y, size.out);
}

void LinearBackward(const LinearSize& size, const float* x, const float* w, const float* dy,
                    float* dx, float* dw, float* dbias) {
  Gemm(size.in, size.out, size.rows, 1, {x, size.in, true}, {dy, size.out}, 0, dw, size.out);
  SumRows(dy, size.rows, size.out, dbias);
  Gemm(size.rows, size.in, size.out, 1, {dy, size.out}, {w, size.out, true}, 0, dx, size.in);
}

void SumRows(const float* x, int64_t rows, int64_t columns, float* out) {
  std::fill_n(out, columns, 0.0F);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t i = 0; i < columns; i++) out[i] += x[row * columns + i];
}

}  // namespace bitrail::train
