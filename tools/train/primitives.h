// Normalisation, softmax and GELU by oneDNN. A primitive is made once for a shape and may be used
// for any tensors of that shape; one thread at a time. Constructors and calls throw dnnl::error.
#pragma once

#include <cstdint>
#include <dnnl.hpp>

namespace bitrail::train {

// The CPU. Making one sets oneDNN (OpenMP) to one thread for the calling thread: ranks share the
// cores already. OMP_NUM_THREADS in the environment overrides that.
struct Device {
  Device();
  dnnl::engine engine;
  dnnl::stream stream;
};

// Layer normalisation of (rows, width):
//   y = scale * (x - mean) / sqrt(variance + 1e-5) + shift, over the width.
class LayerNorm {
 public:
  LayerNorm(Device* device, int64_t rows, int64_t width);
  // scale_shift: scale (width), then shift (width). mean, variance (rows): kept for backward.
  void Forward(const float* x, const float* scale_shift, float* y, float* mean, float* variance);
  void Backward(const float* x, const float* scale_shift, const float* mean, const float* variance,
                const float* dy, float* dx, float* dscale_shift);

 private:
  Device* device_;
  dnnl::memory::desc data_, factors_, statistics_;
  dnnl::layer_normalization_forward forward_;
  dnnl::layer_normalization_backward backward_;
};

// Softmax of each row of (rows, width).
class Softmax {
 public:
  Softmax(Device* device, int64_t rows, int64_t width);
  void Forward(float* x);  // in place
  // dx = p * (dp - sum(p * dp)); in place: dp becomes dx.
  void Backward(const float* p, float* dp);

 private:
  Device* device_;
  dnnl::memory::desc data_;
  dnnl::softmax_forward forward_;
  dnnl::softmax_backward backward_;
};

// y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) of `count` values.
class Gelu {
 public:
  Gelu(Device* device, int64_t count);
  void Forward(const float* x, float* y);
  void Backward(const float* x, const float* dy, float* dx);

 private:
  Device* device_;
  dnnl::memory::desc data_;
  dnnl::eltwise_forward forward_;
  dnnl::eltwise_backward backward_;
};

}  // namespace bitrail::train
